#!/usr/bin/node
// Routes by id from an application, with node-pg: the map is cached by its version.
//
// router.js CONNINFO SHARD COUNT: signs up COUNT users in a shard and reads each by its id. CONNINFO is any
// database that has the map, the control database or a copy. Take the class Router.
'use strict';
const { Pool } = require('pg');

// What a transaction meets while its shard moves: the fence, then tables that are gone.
const moved = new Set(['40001', '42P01', '3F000']);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The options of a connection string of libpq, as the map has them: name=value, or name='a value'.
function optionsOf(conninfo) {
  const options = {};
  for (const [, name, quoted, plain] of conninfo.matchAll(/(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S*))/g)) {
    options[name] = (quoted ?? plain).replace(/\\(.)/g, '$1');
  }
  return { host: options.host, port: options.port, database: options.dbname, user: options.user || process.env.PGUSER };
}

class Router {
  constructor(conninfo) {
    this.pools = new Map();
    this.places = new Map();
    this.map = this.pool(conninfo);
  }

  static async open(conninfo) {
    const router = new Router(conninfo);
    const { rows: [layout] } = await router.map.query('SELECT sequence_bits, shards FROM snowflake.layout');
    router.sequenceBits = BigInt(layout.sequence_bits);
    router.mask = BigInt(layout.shards - 1);
    await router.refresh();
    return router;
  }

  pool(conninfo) {
    if (!this.pools.has(conninfo)) {
      const pool = new Pool(optionsOf(conninfo));
      pool.on('error', () => {});  // an idle connection that broke: the pool makes another
      this.pools.set(conninfo, pool);
    }
    return this.pools.get(conninfo);
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

  // What work(client, schema) returns, run as a transaction where the shard is; again where the shard moves
  // meanwhile, for `patience` ms. Of a connection that breaks the caller is told: whether a commit was done
  // then, only the data can say.
  async run(shard, work, patience = 30000) {
    for (let until = Date.now() + patience, pause = 5; ; pause = Math.min(2 * pause, 100)) {
      if (!this.places.has(shard)) await this.refresh();
      if (!this.places.has(shard)) throw new Error(`shard ${shard} is not in the map of version ${this.version}`);
      const client = await this.pool(this.places.get(shard)).connect();
      let broken;
      try {
        await client.query('BEGIN');
        const result = await work(client, `shard_${shard}`);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK').catch((lost) => { broken = lost; });
        if (!moved.has(error.code) || Date.now() > until) throw error;
      } finally {
        client.release(broken);
      }
      await sleep(pause);
      await this.refresh();
    }
  }

  async close() { for (const pool of this.pools.values()) await pool.end(); }
}

async function main([conninfo, shard, count]) {
  const router = await Router.open(conninfo);
  for (let n = 0; n < Number(count); n++) {
    const { rows: [{ id }] } = await router.run(Number(shard), (client, schema) =>
      client.query(`INSERT INTO ${schema}.users (name) VALUES ($1) RETURNING id`, [`node ${n}`]));
    const { rows: [{ name }] } = await router.run(router.shardOf(id), (client, schema) =>
      client.query(`SELECT name FROM ${schema}.users WHERE id = $1`, [id]));
    if (name !== `node ${n}`) throw new Error(`${id} is ${name}`);
    console.log(id, name);
    await sleep(10);
  }
  await router.close();
}

if (require.main === module) main(process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
module.exports = { Router };
