// graphile-worker: prints which jobs ran.
'use strict';

const { runMigrations, runOnce, quickAddJob } = require('graphile-worker');

const connectionString = `postgres:///worker?host=${process.env.PGHOST}&user=postgres`;
(async () => {
  const ran = [];
  await runMigrations({ connectionString });
  const tasks = {
    note: async ({ n }) => { ran.push(n); },
    fails: async () => { throw new Error('on purpose'); },
  };
  for (let n = 0; n < 50; n++) await quickAddJob({ connectionString }, 'note', { n }, { queueName: `queue ${n % 3}` });
  await quickAddJob({ connectionString }, 'note', { n: 100 }, { jobKey: 'one' });
  await quickAddJob({ connectionString }, 'note', { n: 101 }, { jobKey: 'one' });
  await quickAddJob({ connectionString }, 'fails', {}, { maxAttempts: 1 });
  await runOnce({ connectionString, taskList: tasks, noHandleSignals: true, logger: undefined, concurrency: 3 });
  console.log('= ran', ran.sort((a, b) => a - b).join(' '));
})();
