"""Exceptions that end the program, and functions that write messages."""
import sys
import time


class Refused(Exception):
    """Ends the program with exit status 1. The text states the problem and what the user must do."""


class Stale(Exception):
    """The copied rows cannot be used, so the program starts the copy again."""


def printable(text, kept=""):
    """Replaces control characters by escapes, because names that other roles have chosen may contain control
    characters."""
    return "".join(c if c in kept or c.isprintable() else f"\\x{ord(c):02x}" for c in text.replace("\t", "  "))


def indented(sentences):
    return "\n".join(f"  {sentence}" for sentence in sentences)


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {printable(text, chr(10))}", flush=True)


def complain(text):
    print(f"snowflake-move-shard: {printable(text, chr(10))}", file=sys.stderr, flush=True)


def words(error):
    """Returns the error message of the server, without the CONTEXT lines."""
    return str(error).strip().split("\nCONTEXT:")[0] or type(error).__name__
