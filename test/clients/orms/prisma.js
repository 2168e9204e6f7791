// Tests that Prisma returns each id as a BigInt, without rounding. Prisma's client runs on node-postgres, and `prisma
// generate` needs no engine.
'use strict';

const { execFileSync } = require('node:child_process');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { PrismaPg } = require('@prisma/adapter-pg');
const { Pool } = require('pg');
const { equal, ok, run, inOrder } = require('../javascript/tap');

const schema = `
generator client {
  provider = "prisma-client-js"
  output   = "./client"
}
datasource db {
  provider = "postgresql"
}
model Photo {
  id      BigInt @id @default(dbgenerated("snowflake.next_id(5)"))
  caption String
  @@map("photos")
}
model Comment {
  id   Int    @id @default(autoincrement())
  body String
  @@map("comments")
}
`;

// /bin/true replaces the engine. The test avoids Prisma's engine, because the engine would be downloaded and is needed
// only for migrations.
const environment = { ...process.env, CHECKPOINT_DISABLE: '1', PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true' };

run(async () => {
  const directory = mkdtempSync(join(__dirname, 'prisma-'));
  try {
    writeFileSync(join(directory, 'schema.prisma'), schema);
    execFileSync(process.execPath, [join(__dirname, 'node_modules/prisma/build/index.js'), 'generate', '--schema', join(directory, 'schema.prisma')],
      { stdio: ['ignore', 'ignore', 'inherit'], env: environment });
    const { PrismaClient } = require(join(directory, 'client'));
    await use(PrismaClient);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

async function use(PrismaClient) {
  const pool = new Pool({ max: 1 });
  await pool.query('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text NOT NULL)');
  const asText = async () => (await pool.query('SELECT id::text AS digits FROM photos ORDER BY id')).rows.map((row) => row.digits);
  const prisma = new PrismaClient({ adapter: new PrismaPg({ host: process.env.PGHOST, port: Number(process.env.PGPORT), user: process.env.PGUSER, database: process.env.PGDATABASE }) });

  const photo = await prisma.photo.create({ data: { caption: 'first light' } });
  equal([String(photo.id)], await asText(), 'create(), a BigInt');
  equal((await prisma.photo.findUniqueOrThrow({ where: { id: photo.id } })).caption, 'first light', 'findUnique()');
  const many = await prisma.photo.createManyAndReturn({ data: Array(1000).fill({ caption: 'many' }) });
  equal(inOrder([photo.id, ...many.map((row) => row.id)]), await asText(), 'createManyAndReturn()');
  const found = await prisma.photo.findMany({ where: { id: { in: many.map((row) => row.id) } } });
  ok(found.length === 1000, 'ids as parameters', found.length);

  // Tests adopt() on an application whose key had the type Int. The model of the application stays unchanged.
  await pool.query('CREATE TABLE comments (id serial PRIMARY KEY, body text NOT NULL)');
  const old = await prisma.comment.create({ data: { body: 'old' } });
  await pool.query('CREATE EXTENSION snowflake_migrate');
  await pool.query("CALL snowflake.adopt('comments', 5, rewrite => true)");
  const failure = (promise) => promise.then((row) => row, (error) => error.code ?? error.message);
  equal(await failure(prisma.comment.findUnique({ where: { id: old.id } })), { id: 1, body: 'old' }, 'an adopted table: a model that says Int finds old rows');
  equal(await failure(prisma.comment.create({ data: { body: 'new' } })), 'P2023', '... but create() fails');
  equal((await pool.query('SELECT count(*) AS rows FROM comments')).rows, [{ rows: '2' }], '... after it has written the row');
  equal(await failure(prisma.comment.findMany()), 'P2023', '... and so does every result with a new row');
  await prisma.$disconnect();
  await pool.end();
}
