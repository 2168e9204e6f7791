// What is settled in the current database, and what holds it back.
//
// The words are raised to the clock, but no further than the durable mark: after a crash ids begin
// at the mark, so what was settled before it stays so, whichever way the clock went. A database
// that mints nothing stays where its mark is, above all of its ids. Waits for no transaction, no
// clock and no disk.
#pragma once

#include <cstdint>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

enum class HeldBy : uint8_t {
  nothing,
  transaction,   // that is open and has minted
  prepared,      // likewise
  one_snapshot,  // the transaction that asks reads in one: nothing is settled for it
  standby,       // its primary knows
  mark,          // it is locked, not durable yet, or lost
};

struct SettledAnswer {
  bool known;
  int64_t id;  // every id below it is settled
  HeldBy held_by;
  int pid;                    // of the open transaction, or 0
  TransactionId transaction;  // that is prepared, or invalid
  int64_t since_ms;           // when that transaction minted first, or 0
};

// The answer, for snapshots that are taken from now on.
SettledAnswer settled();

// That there is none, and why.
SettledAnswer no_answer(HeldBy reason);

}  // namespace snowflake::pg
