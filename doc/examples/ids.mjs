// Reads and writes ids in JavaScript. For another layout, change the numbers at the top.
import { createHash } from 'node:crypto';

const epoch = 1735689600000n, tick = 1n, regionBits = 5n, shardBits = 8n, sequenceBits = 10n;
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function checked(id) {
  if (id < 0n || id >= 2n ** 63n) throw new RangeError('not an id');
  return id;
}

const field = (id, shift, bits) => Number(checked(id) >> shift & (1n << bits) - 1n);

export const timeOf = (id) => new Date(Number(epoch + (checked(id) >> regionBits + shardBits + sequenceBits) * tick));
export const regionOf = (id) => field(id, shardBits + sequenceBits, regionBits);
export const shardOf = (id) => field(id, sequenceBits, shardBits);
export const sequenceOf = (id) => field(id, 0n, sequenceBits);

export function toBase62(id) {
  let text = '';
  for (let rest = checked(id); text.length < 11; rest /= 62n) text = base62[Number(rest % 62n)] + text;
  return text;
}

export function fromBase62(text) {
  if (!/^[0-9A-Za-z]{11}$/.test(text)) throw new RangeError('not a base62 id');
  return checked([...text].reduce((n, symbol) => n * 62n + BigInt(base62.indexOf(symbol)), 0n));
}

export function shardFor(key, shards = 1n << shardBits) {
  if (shards < 1 || shards > 1n << shardBits) throw new RangeError('not a number of shards');
  const hash = createHash('sha256').update(String(key)).digest().readUInt32BE();
  return Number(BigInt(hash) * BigInt(shards) >> 32n);
}
