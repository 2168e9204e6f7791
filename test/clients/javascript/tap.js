// Functions with which the JavaScript tests print results in TAP.
'use strict';

const { isDeepStrictEqual } = require('node:util');

let count = 0;
const shown = (value) => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}n` : v)) ?? String(value);

function ok(passed, what, found = '') {
  count += 1;
  console.log(`${passed ? 'ok' : 'not ok'} ${count} - ${what}`);
  if (!passed) console.log(`# found: ${shown(found).slice(0, 500)}`);
}

const equal = (found, expected, what) => ok(isDeepStrictEqual(found, expected), what, { found, expected });

// Runs the steps of a test. An exception ends the program before it prints the plan of TAP, so the test fails.
async function run(main) {
  await main();
  console.log(`1..${count}`);
}

// Ids in numerical order.
const inOrder = (ids) => ids.map(String).sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));

module.exports = { ok, equal, run, inOrder };
