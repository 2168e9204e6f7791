// Starts Unleash, and prints what its API returns after ordinary work.
'use strict';

const { types } = require('pg');
const { start } = require('unleash-server');

types.setTypeParser(types.builtins.INT8, Number);    // ids of at most 53 bits are exact as JavaScript numbers

const name = process.argv[2];
(async () => {
  const { stop, server } = await start({
    db: { host: process.env.PGHOST, user: 'postgres', password: '', database: 'unleash', ssl: false },
    server: { port: 4242, host: '127.0.0.1' }, authentication: { type: 'none' }, versionCheck: { enable: false }, logLevel: 'fatal',
    disableScheduler: true,
  });
  const call = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:4242/api/${path}`, {
      method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    try { return JSON.parse(text); } catch { return text; }
  };
  const features = 'admin/projects/default/features';
  for (let n = 0; n < 10; n++) await call('POST', features, { name: `${name}-${n}`, type: 'release' });
  const user = await call('POST', 'admin/user-admin', { email: `${name}@example.com`, name, rootRole: 1, sendEmail: false });
  await call('PUT', `admin/user-admin/${user.id}`, { name: `${name} again`, rootRole: 2 });
  const segment = await call('POST', 'admin/segments', { name, constraints: [] });
  const strategy = await call('POST', `${features}/${name}-0/environments/development/strategies`, { name: 'default', segments: [segment.id] });
  await call('POST', `admin/features/${name}-1/tags`, { type: 'simple', value: name });
  await call('DELETE', `${features}/${name}-9`);
  const other = await call('POST', 'admin/user-admin', { email: `other-${name}@example.com`, name: 'other', rootRole: 1, sendEmail: false });
  await call('DELETE', `admin/user-admin/${other.id}`);

  const all = (await call('GET', features)).features.map((feature) => feature.name);
  console.log('= features', all.filter((found) => found.startsWith(`${name}-`)).length);
  console.log('= user', (await call('GET', `admin/user-admin/${user.id}`)).name.replace(name, 'N'), (await call('GET', `admin/user-admin/${user.id}`)).rootRole);
  console.log('= segment', (await call('GET', `admin/segments/strategies/${strategy.id}`)).segments.map((found) => found.name === name));
  console.log('= events', (await call('GET', `admin/events/${name}-0`)).events.map((event) => event.type).sort().join(' '));
  console.log('= all of before', all.filter((found) => found.startsWith('before-')).length,
    (await call('GET', 'admin/user-admin')).users.filter((found) => /^before/.test(found.name)).length);
  await stop();
  server?.close?.();
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
