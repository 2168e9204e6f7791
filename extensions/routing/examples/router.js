#!/usr/bin/node
// Routes by id from an application, with node-pg: the map is cached by its version.
//
// router.js CONNINFO SHARD COUNT: signs up COUNT users in a shard and reads each by its id. CONNINFO, a URL or
// name=value as the map has it, is of a database that has the map and the extension snowflake, which knows the layout
// of ids: a data server or a router; the control database where both are installed there. Take the class Router.
'use strict';
const { readFileSync } = require('fs');
const tls = require('tls');
const { Pool } = require('pg');

// Errors of a transaction whose shard moves: the fence, then tables that are gone.
const moved = new Set(['40001', '42P01', '3F000']);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The options of a connection string of libpq, as the map has them: name=value, or name='a value'; or a URL.
function optionsOf(conninfo) {
  if (/^postgres(ql)?:\/\//.test(conninfo)) {
    const url = new URL(conninfo);
    const parts = [['host', url.hostname], ['port', url.port], ['dbname', url.pathname.slice(1)], ['user', url.username], ['password', url.password]];
    return Object.fromEntries([...parts.filter(([, value]) => value).map(([name, value]) => [name, decodeURIComponent(value)]), ...url.searchParams]);
  }
  const options = {};
  const option = /\s*([a-z_]+)\s*=\s*(?:'((?:[^'\\]|\\[^])*)'|((?:[^'\\\s]|\\[^])*))(?:\s+|$)/y;
  while (option.lastIndex < conninfo.length) {
    const found = option.exec(conninfo);
    if (!found) throw new Error('a connection string cannot be read');
    options[found[1]] = (found[2] ?? found[3]).replace(/\\([^])/g, '$1');
  }
  return options;
}

// The same for node-pg: every option is obeyed, or refused. Without sslmode connections are in the clear.
function poolOf(conninfo) {
  const { host, port, dbname, user, password, application_name, options, connect_timeout, sslmode = 'disable', sslrootcert, sslcert, sslkey,
    keepalives = '1', keepalives_idle, ...others } = optionsOf(conninfo);
  const refuse = (what) => { throw new Error(`this router cannot do what a connection string wants: ${what}`); };
  if (Object.keys(others).length) refuse(Object.keys(others).join(', '));
  if (`${host}${port}`.includes(',')) refuse('several hosts');
  const verify = sslmode.startsWith('verify-') || (sslmode === 'require' && sslrootcert !== undefined);  // as libpq does
  if (!['disable', 'require', 'verify-ca', 'verify-full'].includes(sslmode)) refuse(`sslmode=${sslmode}`);
  if (verify && sslrootcert === undefined) refuse(`sslmode=${sslmode} without sslrootcert`);
  const read = (file) => (file === undefined ? undefined : readFileSync(file));
  const ssl = sslmode !== 'disable' && {
    rejectUnauthorized: verify, ca: sslrootcert === 'system' ? undefined : read(sslrootcert), cert: read(sslcert), key: read(sslkey),
    // Said here, for where the host is an address Node compares the certificate with "localhost".
    checkServerIdentity: (_, certificate) => (sslmode === 'verify-full' ? tls.checkServerIdentity(host, certificate) : undefined) };
  return {
    host, port, database: dbname, user: user || process.env.PGUSER, password, application_name, options, ssl,
    connectionTimeoutMillis: 1000 * (connect_timeout || 10), statement_timeout: 30000, query_timeout: 35000,
    keepAlive: keepalives !== '0', keepAliveInitialDelayMillis: 1000 * (keepalives_idle || 30) };
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
      const pool = new Pool(poolOf(conninfo));
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
  // meanwhile, for `timeout` ms. Of a connection that breaks the caller is told: whether a commit was done
  // then, only the data can say.
  async run(shard, work, timeout = 30000) {
    for (let until = Date.now() + timeout, pause = 5; ; pause = Math.min(2 * pause, 100)) {
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
module.exports = { Router, poolOf };
