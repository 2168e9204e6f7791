// Tests that postgres.js returns each id as a string, or as a BigInt if an option is set. Strings and BigInt are exact.
'use strict';

const postgres = require('postgres');
const { ok, equal, run, inOrder } = require('./tap');

run(async () => {
  const sql = postgres({ max: 1 });
  await sql`CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)`;
  const asText = async () => (await sql`SELECT id::text FROM photos ORDER BY photos.id`).map((row) => row.id);

  const [{ id }] = await sql`INSERT INTO photos (caption) VALUES ('first light') RETURNING id`;
  equal([id], await asText(), 'RETURNING id, a string');
  const [{ caption }] = await sql`SELECT caption FROM photos WHERE id = ${id}`;
  equal(caption, 'first light', 'the id as a parameter');
  const many = await sql`INSERT INTO photos ${sql(Array(1000).fill({ caption: 'many' }))} RETURNING id`;
  equal(inOrder([id, ...many.map((row) => row.id)]), await asText(), '1,000 rows in an INSERT');

  const odd = (await asText()).find((one) => String(Number(one)) !== one);
  const others = await sql`SELECT id FROM photos WHERE id = ${Number(odd)}`;
  ok(!others.some((row) => row.id === odd), 'trap: WHERE id = a number does not find the row');
  const [{ all }] = await sql`SELECT json_agg(id) AS all FROM photos`;
  ok(new Set(all).size < 1001, 'trap: json_agg(id) is parsed into rounded numbers', new Set(all).size);
  await sql.end();

  const big = postgres({ max: 1, types: { bigint: postgres.BigInt } });
  const rows = await big`SELECT id, id::text AS text FROM photos`;
  ok(rows.every((row) => typeof row.id === 'bigint' && String(row.id) === row.text), 'types: { bigint: postgres.BigInt }');
  const [found] = await big`SELECT caption FROM photos WHERE id = ${BigInt(id)}`;
  equal(found.caption, 'first light', 'a BigInt as a parameter');
  await big.end();
});
