"""The program snowflake-move-shard moves a shard (a schema) to another server while clients write to the shard.

check.py decides whether a shard can be moved. copying.py, fence.py and finish.py contain the steps of a move in order.
main.py reads the command line."""
VERSION = "1.0.0"
