"""Moves a logical shard, a schema, to another server while it is written to: the program snowflake-move-shard.
check.py decides whether, copying.py, fence.py and finish.py are the steps in order, main.py is the command line."""
VERSION = "1.0.0"
