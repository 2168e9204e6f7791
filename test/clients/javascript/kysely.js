// Tests that Kysely returns each id as a string, without rounding.
'use strict';

const { Kysely, PostgresDialect, sql } = require('kysely');
const { Pool } = require('pg');
const { equal, run, inOrder } = require('./tap');

run(async () => {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ max: 1 }) }) });
  await db.schema.createTable('photos')
    .addColumn('id', 'bigint', (column) => column.primaryKey().defaultTo(sql`snowflake.next_id(5)`))
    .addColumn('caption', 'text')
    .execute();
  const asText = async () =>
    (await db.selectFrom('photos').select(sql`id::text`.as('digits')).orderBy('id').execute()).map((row) => row.digits);

  const { id } = await db.insertInto('photos').values({ caption: 'first light' }).returning('id').executeTakeFirstOrThrow();
  equal([id], await asText(), "returning('id')");
  const found = await db.selectFrom('photos').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  equal(found.caption, 'first light', 'where id = the string');
  const many = await db.insertInto('photos').values(Array(1000).fill({ caption: 'many' })).returning('id').execute();
  equal(inOrder([id, ...many.map((row) => row.id)]), await asText(), '1,000 rows in an INSERT');
  await db.destroy();
});
