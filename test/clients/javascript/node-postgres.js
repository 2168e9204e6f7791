// Tests that node-postgres returns each id as a string, without rounding. JavaScript rounds ids that are converted to
// numbers.
'use strict';

const { Client, types } = require('pg');
const { ok, equal, run, inOrder } = require('./tap');

run(async () => {
  const client = new Client();
  await client.connect();
  await client.query('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)');
  const asText = async (where = 'true') =>
    (await client.query(`SELECT id::text FROM photos WHERE ${where} ORDER BY photos.id`)).rows.map((row) => row.id);

  const { rows: [{ id }] } = await client.query("INSERT INTO photos (caption) VALUES ('first light') RETURNING id");
  equal([id], await asText(), 'RETURNING id, a string');
  const { rows: [found] } = await client.query('SELECT caption FROM photos WHERE id = $1', [id]);
  equal(found.caption, 'first light', 'the id as a parameter, a string');
  const big = await client.query('SELECT caption FROM photos WHERE id = $1', [BigInt(id)]);
  equal(big.rowCount, 1, 'and a BigInt');

  const many = await client.query("INSERT INTO photos (caption) SELECT 'many' FROM generate_series(1, 1000) RETURNING id");
  const ids = await asText("caption = 'many'");
  equal(inOrder(many.rows.map((row) => row.id)), ids, '1,000 ids');
  const shard = await client.query('SELECT snowflake.shard_of(snowflake.next_id($1)) AS shard', [7]);
  equal(shard.rows[0].shard, 7, 'the shard as a parameter');

  // Replaces the parser of the type bigint for all clients of the process.
  const selectMany = "SELECT id FROM photos WHERE caption = 'many' ORDER BY id";
  const string = types.getTypeParser(20);
  types.setTypeParser(20, Number);
  const numbers = new Set((await client.query(selectMany)).rows.map((row) => row.id));
  ok(numbers.size < 100, 'trap: setTypeParser(20, Number) makes one number of many ids', numbers.size);
  types.setTypeParser(20, BigInt);
  equal((await client.query(selectMany)).rows.map((row) => String(row.id)), ids, 'setTypeParser(20, BigInt) is exact');
  types.setTypeParser(20, string);

  // An id that is passed as a JavaScript number finds no row or a wrong row, because most ids are rounded.
  const odd = ids.find((one) => String(Number(one)) !== one);
  const others = await client.query('SELECT id FROM photos WHERE id = $1', [Number(odd)]);
  ok(!others.rows.some((row) => row.id === odd), 'trap: WHERE id = $1 with a number does not find the row');

  // The client parses columns of type json, and rounds the ids in them.
  const three = 'SELECT * FROM photos WHERE id = ANY ($1) ORDER BY id';
  const aggregate = async (key) =>
    (await client.query(`SELECT json_agg(json_build_object('id', ${key})) AS all FROM (${three}) p`, [ids.slice(1, 4)]))
      .rows[0].all.map((photo) => String(photo.id));
  ok(new Set(await aggregate('id')).size < 3, 'trap: json_agg(id) is parsed into rounded numbers');
  equal(await aggregate('id::text'), ids.slice(1, 4), 'json_agg(id::text) is exact');

  // An application that parses JSON itself gets rounded ids, too.
  const parse = async (key) =>
    JSON.parse((await client.query(`SELECT json_agg(${key})::text AS all FROM (${three}) p`, [ids.slice(1, 4)])).rows[0].all).map(String);
  ok(new Set(await parse('id')).size < 3, 'trap: JSON.parse rounds');
  equal(await parse('id::text'), ids.slice(1, 4), 'JSON.parse of strings is exact');
  try {
    JSON.stringify({ id: BigInt(id) });
    ok(false, 'JSON.stringify refuses a BigInt');
  } catch (error) {
    ok(error instanceof TypeError, 'JSON.stringify refuses a BigInt');
  }
  equal(JSON.stringify({ id: BigInt(id) }, (_, value) => (typeof value === 'bigint' ? String(value) : value)), `{"id":"${id}"}`,
    'and takes it with a replacer');
  await client.end();
});
