"""How the program ends when it cannot go on, and how it speaks."""
import sys
import time


class Refused(Exception):
    """A sentence for the user: what is wrong, and what to do. Exit status 1."""


class Stale(Exception):
    """What was copied cannot be relied on: the copy starts over."""


def printable(text, kept=""):
    """Without control characters, which names of other people's may have."""
    return "".join(c if c in kept or c.isprintable() else f"\\x{ord(c):02x}" for c in text.replace("\t", "  "))


def indented(sentences):
    return "\n".join(f"  {sentence}" for sentence in sentences)


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {printable(text, chr(10))}", flush=True)


def complain(text):
    print(f"snowflake-move-shard: {printable(text, chr(10))}", file=sys.stderr, flush=True)


def words(error):
    """What the server says, without the statement that a function of ours was at."""
    return str(error).strip().split("\nCONTEXT:")[0] or type(error).__name__
