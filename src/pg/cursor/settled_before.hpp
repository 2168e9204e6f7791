// Finds the settled id of the current database, below which no new row can appear, and the
// transaction that prevents a greater settled id.
//
// The function settled() raises the next id of each shard to the current time, but at most to the
// durable high-water mark. After a crash, ids begin at the high-water mark, so no new row can
// appear below a settled id, even if the clock is wrong. In a database that does not mint,
// settled() returns the first id at the high-water mark. All existing ids are below the high-water
// mark. The function settled() does not wait for transactions, clocks or disks.
#pragma once

#include <cstdint>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

enum class HeldBy : uint8_t {
  nothing,
  transaction,   // an open transaction has minted
  prepared,      // a prepared transaction has minted
  one_snapshot,  // the isolation level is REPEATABLE READ or SERIALIZABLE
  standby,       // only primaries have shard counters
  mark,          // the high-water mark is locked by a session, not flushed to disk, or lost
};

struct SettledAnswer {
  bool known;
  int64_t id;  // every smaller id is settled
  HeldBy held_by;
  int pid;                    // the process id of the open transaction's session
  TransactionId transaction;  // the id of the prepared transaction
  int64_t since_ms;           // the time of the transaction's first id
};

// No new row can appear below the settled id in a snapshot that is taken after settled() has
// returned.
SettledAnswer settled();

SettledAnswer no_answer(HeldBy reason);

}  // namespace snowflake::pg
