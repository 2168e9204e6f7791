"""Moves a logical shard, a schema, to another server while it is written to: the program snowflake-move-shard.

errors.py and session.py have nothing of moves; places.py connects, and reads how far a move is; check.py finds what
stands against a move; copying.py, fence.py and finish.py are its steps, in that order; main.py is the command line.
"""
VERSION = "1.0.0"
