// Which prepared transactions have minted, and since which tick.
//
// A prepared transaction belongs to no session, and outlives restarts. So do its locks: PostgreSQL
// writes them into its state file, and releases them after it has left the set of running
// transactions. So before it is prepared it takes two that nobody waits for: one that all such
// transactions of the database share, by which a reader learns with one look that there are any,
// and one that has the tick in its name. They show in pg_locks as advisory locks, of numbers that
// pg_advisory_lock() does not take.
#pragma once

#include "core/settled.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Before PREPARE TRANSACTION. While the session's slot is open, which it stays until the locks are
// the prepared transaction's.
void hold_prepared_mint();

// The prepared transaction of the current database that minted first. `since` is OpenMints::kNone
// where there is none.
struct OldestPreparedMint {
  uint64_t since;
  TransactionId transaction;
};
OldestPreparedMint oldest_prepared_mint();

}  // namespace snowflake::pg
