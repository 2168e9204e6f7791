#!/usr/bin/node
// Routes by id from an application, with node-pg: the map is cached by its version.
//
// router.js CONNINFO SHARD COUNT: signs up COUNT users in a shard and reads each by its id. CONNINFO is any
// database that has the map, the control database or a copy.
'use strict';
const { Client } = require('pg');

// What a writer meets while its shard moves: the fence, then tables that are gone.
const moved = new Set(['40001', '42P01', '3F000']);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A connection string of libpq, as the map has them, without quotes.
async function connect(conninfo) {
  const options = Object.fromEntries(conninfo.trim().split(/\s+/).map((option) => option.split('=')));
  const client = new Client({ host: options.host, port: options.port, database: options.dbname, user: options.user || process.env.PGUSER });
  await client.connect();
  return client;
}

class Router {
  static async open(conninfo) {
    const router = new Router();
    router.map = await connect(conninfo);
    const { rows } = await router.map.query('SELECT sequence_bits, shards FROM snowflake.layout');
    router.sequenceBits = BigInt(rows[0].sequence_bits);
    router.mask = BigInt(rows[0].shards - 1);
    router.connections = new Map();
    await router.refresh();
    return router;
  }

  // Reads the map again if it has changed: one number where it has not.
  async refresh() {
    const { rows: [{ version }] } = await this.map.query('SELECT snowflake_fleet.map_version() AS version');
    if (version === this.version) return;
    const { rows } = await this.map.query('SELECT shard, conninfo, version FROM snowflake_fleet.map');
    this.places = new Map(rows.map((row) => [row.shard, row.conninfo]));
    this.version = rows.length ? rows[0].version : version;
  }

  // Ids are strings here, and BigInt where they are reckoned with: a number is exact up to 2^53 only.
  shardOf(id) { return Number((BigInt(id) >> this.sequenceBits) & this.mask); }

  // Runs a statement of one transaction where the shard is.
  async run(shard, statement, values, patience = 30000) {
    for (const until = Date.now() + patience; ;) {
      const conninfo = this.places.get(shard);
      if (!this.connections.has(conninfo)) this.connections.set(conninfo, await connect(conninfo));
      try {
        const { rows } = await this.connections.get(conninfo).query(statement(`shard_${shard}`), values);
        return rows[0];
      } catch (error) {
        if (!moved.has(error.code) || Date.now() > until) throw error;
        await pause(5);
        await this.refresh();
      }
    }
  }

  async close() {
    for (const client of [this.map, ...this.connections.values()]) await client.end();
  }
}

async function main([conninfo, shard, count]) {
  const router = await Router.open(conninfo);
  for (let n = 0; n < Number(count); n++) {
    const { id } = await router.run(Number(shard), (schema) => `INSERT INTO ${schema}.users (name) VALUES ($1) RETURNING id`, [`node ${n}`]);
    const { name } = await router.run(router.shardOf(id), (schema) => `SELECT name FROM ${schema}.users WHERE id = $1`, [id]);
    if (name !== `node ${n}`) throw new Error(`${id} is ${name}`);
    console.log(id, name);
    await pause(10);
  }
  await router.close();
}

main(process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
