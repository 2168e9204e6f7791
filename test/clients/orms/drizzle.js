// Drizzle: exact with mode "bigint". Columns with the mode "number", which `drizzle-kit pull` writes, return rounded
// ids.
'use strict';

const { execFileSync } = require('node:child_process');
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { drizzle } = require('drizzle-orm/node-postgres');
const { bigint, pgTable, serial, text } = require('drizzle-orm/pg-core');
const { eq, sql } = require('drizzle-orm');
const { Pool } = require('pg');
const { ok, equal, run, inOrder } = require('../javascript/tap');

const photos = pgTable('photos', {
  id: bigint('id', { mode: 'bigint' }).primaryKey().default(sql`snowflake.next_id(5)`),
  caption: text('caption'),
});
const rounded = pgTable('photos', { id: bigint('id', { mode: 'number' }).primaryKey(), caption: text('caption') });

// The configuration file of drizzle-kit must be in a directory from which Node.js finds the modules that the file
// names.
function pulled() {
  const directory = mkdtempSync(join(__dirname, 'pull-'));
  try {
    const config = {
      dialect: 'postgresql', out: directory, schemaFilter: ['public'],
      dbCredentials: { host: '127.0.0.1', port: Number(process.env.PGPORT), user: process.env.PGUSER, database: process.env.PGDATABASE, ssl: false },
    };
    writeFileSync(join(directory, 'drizzle.config.json'), JSON.stringify(config));
    execFileSync(process.execPath, [join(__dirname, 'node_modules/drizzle-kit/bin.cjs'), 'pull', `--config=${join(directory, 'drizzle.config.json')}`],
      { stdio: ['ignore', 'ignore', 'inherit'] });
    return readFileSync(join(directory, 'schema.ts'), 'utf8');
  } finally {
    rmSync(directory, { recursive: true });
  }
}

run(async () => {
  const pool = new Pool({ max: 1 });
  const db = drizzle(pool);
  await pool.query('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)');
  const asText = async () => (await pool.query('SELECT id::text AS digits FROM photos ORDER BY id')).rows.map((row) => row.digits);

  const [{ id }] = await db.insert(photos).values({ caption: 'first light' }).returning({ id: photos.id });
  equal([String(id)], await asText(), 'returning(), a BigInt');
  const [found] = await db.select().from(photos).where(eq(photos.id, id));
  equal(found.caption, 'first light', 'where(eq(photos.id, id))');
  const many = await db.insert(photos).values(Array(1000).fill({ caption: 'many' })).returning({ id: photos.id });
  equal(inOrder([id, ...many.map((row) => row.id)]), await asText(), '1,000 rows in an insert()');

  const numbers = new Set((await db.select().from(rounded)).map((row) => row.id));
  ok(numbers.size < 100, 'trap: mode "number" makes one number of many ids', numbers.size);
  const schema = pulled();
  ok(schema.includes('mode: "number"'), 'trap: drizzle-kit pull writes mode "number"', schema);

  // Tests adopt() on an application whose key had the type serial. The model of the application stays unchanged.
  const comments = pgTable('comments', { id: serial('id').primaryKey(), body: text('body') });
  await pool.query('CREATE TABLE comments (id serial PRIMARY KEY, body text)');
  await db.insert(comments).values({ body: 'old' });
  await pool.query('CREATE EXTENSION snowflake_migrate');
  await pool.query("CALL snowflake.adopt('comments', 5, rewrite => true)");
  const [comment] = await db.insert(comments).values({ body: 'new' }).returning();
  equal((await db.select().from(comments).where(eq(comments.id, comment.id))).map((row) => row.body), ['new'], 'an adopted table: a model that says serial() finds new rows');
  equal((await db.select().from(comments)).map((row) => row.id), ['1', comment.id], '... but its ids are strings, also of old rows');
  await pool.end();
});
