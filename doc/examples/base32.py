"""Reads base32 ids."""
import re

BASE32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U'

def from_base32(text, check_symbol=False):
    plain = text.translate(str.maketrans('oOiIlL', '001111', '-'))
    if not re.fullmatch('[0-9A-TV-Za-tv-z]{13}' + ('[0-9A-Za-z*~$=]' if check_symbol else ''), plain):
        raise ValueError('not a base32 id')
    n = 0
    for symbol in plain[:13].upper():
        n = n * 32 + BASE32.index(symbol)
    if n >= 2 ** 63:
        raise ValueError('not an id')
    if check_symbol and BASE32[n % 37] != plain[13].upper():
        raise ValueError('wrong check symbol')
    return n
