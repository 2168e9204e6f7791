// Tests that Knex returns each id as a string, without rounding.
'use strict';

const { equal, run, inOrder } = require('./tap');
const knex = require('knex')({ client: 'pg', connection: {} });

run(async () => {
  await knex.schema.createTable('photos', (t) => {
    t.bigint('id').primary().defaultTo(knex.raw('snowflake.next_id(5)'));
    t.text('caption');
  });
  const asText = async () => (await knex('photos').select(knex.raw('id::text AS digits')).orderBy('id')).map((row) => row.digits);

  const [{ id }] = await knex('photos').insert({ caption: 'first light' }).returning('id');
  equal([id], await asText(), "insert().returning('id')");
  equal((await knex('photos').where({ id }).first()).caption, 'first light', 'where({ id })');
  const many = await knex('photos').insert(Array(1000).fill({ caption: 'many' })).returning('id');
  equal(inOrder([id, ...many.map((row) => row.id)]), await asText(), '1,000 rows in an INSERT');
  const batches = await knex.batchInsert('photos', Array(1000).fill({ caption: 'more' }), 100).returning('id');
  equal(inOrder([id, ...many.map((row) => row.id), ...batches.map((row) => row.id)]), await asText(), 'batchInsert()');
  await knex.destroy();
});
