// Finds the settled id of the current database, and the transaction or state that holds back the
// settled id.
//
// The shard counters are raised to the clock, but at most to the durable mark. After a crash ids
// begin at the mark, so a settled id stays settled even if the clock is wrong. In a database that
// does not mint, the settled id stays at the mark, above all ids. The call does not wait for
// transactions, clocks or disks.
#pragma once

#include <cstdint>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

enum class HeldBy : uint8_t {
  nothing,
  transaction,   // an open transaction has minted
  prepared,      // a prepared transaction has minted
  one_snapshot,  // the caller's transaction reads all data in one snapshot
  standby,       // the shard counters and open transactions are only on the primary
  mark,          // the mark is locked, not durable yet, or lost
};

struct SettledAnswer {
  bool known;
  int64_t id;  // every smaller id is settled
  HeldBy held_by;
  int pid;                    // the session whose open transaction holds the id back, or 0
  TransactionId transaction;  // the prepared transaction that holds the id back, or invalid
  int64_t since_ms;           // when the open transaction minted its first id, or 0
};

// Returns a settled id that is valid for snapshots that are taken later.
SettledAnswer settled();

SettledAnswer no_answer(HeldBy reason);

}  // namespace snowflake::pg
