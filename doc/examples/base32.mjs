// Reads base32 ids in JavaScript.
const base32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U';

export function fromBase32(text, checkSymbol = false) {
  const plain = text.replace(/-/g, '').replace(/[oO]/g, '0').replace(/[iIlL]/g, '1');
  const form = checkSymbol ? /^[0-9A-TV-Za-tv-z]{13}[0-9A-Za-z*~$=]$/ : /^[0-9A-TV-Za-tv-z]{13}$/;
  if (!form.test(plain)) throw new RangeError('not a base32 id');
  const symbols = plain.toUpperCase();
  const id = [...symbols.slice(0, 13)].reduce((n, symbol) => n * 32n + BigInt(base32.indexOf(symbol)), 0n);
  if (id >= 2n ** 63n) throw new RangeError('not an id');
  if (checkSymbol && base32[Number(id % 37n)] !== symbols[13]) throw new RangeError('wrong check symbol');
  return id;
}
