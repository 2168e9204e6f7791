"""Reads and writes ids. For another layout, change the numbers at the top."""
import hashlib
import re
from datetime import datetime, timedelta, timezone

EPOCH, TICK = datetime(2025, 1, 1, tzinfo=timezone.utc), timedelta(milliseconds=1)
REGION_BITS, SHARD_BITS, SEQUENCE_BITS = 5, 8, 10
BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

def checked(number):
    if not 0 <= number < 2 ** 63:
        raise ValueError('not an id')
    return number

def time_of(number):
    return EPOCH + (checked(number) >> REGION_BITS + SHARD_BITS + SEQUENCE_BITS) * TICK

def region_of(number):
    return checked(number) >> SHARD_BITS + SEQUENCE_BITS & (1 << REGION_BITS) - 1

def shard_of(number):
    return checked(number) >> SEQUENCE_BITS & (1 << SHARD_BITS) - 1

def sequence_of(number):
    return checked(number) & (1 << SEQUENCE_BITS) - 1

def to_base62(number):
    checked(number)
    return ''.join(BASE62[number // 62 ** place % 62] for place in range(10, -1, -1))

def from_base62(text):
    if not re.fullmatch('[0-9A-Za-z]{11}', text):
        raise ValueError('not a base62 id')
    return checked(sum(BASE62.index(symbol) * 62 ** (10 - place) for place, symbol in enumerate(text)))

def shard_for(key, shards=1 << SHARD_BITS):
    if shards not in range(1, (1 << SHARD_BITS) + 1):
        raise ValueError('not a number of shards')
    return int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:4], 'big') * shards >> 32
