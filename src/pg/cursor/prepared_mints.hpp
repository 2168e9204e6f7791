// Records which prepared transactions have minted, and since which tick.
//
// A prepared transaction has no session and survives restarts. Its locks survive, too: PostgreSQL
// writes them to the state file, and releases them after the transaction has left the set of
// running ones. So a transaction takes two locks before it is prepared. The first is shared by all
// such transactions of the database: it shows a reader with one look-up whether there are any. The
// second has the tick in its key. No session waits for them. pg_locks shows them as advisory locks
// of a class that pg_advisory_lock() does not use.
#pragma once

#include "core/settled.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Called before PREPARE TRANSACTION, while the session's slot is open. The slot stays open until
// the locks belong to the prepared transaction.
void hold_prepared_mint();

// The prepared transaction of the current database that minted first. Without one, `since` is
// OpenMints::kNone.
struct OldestPreparedMint {
  uint64_t since;
  TransactionId transaction;
};
OldestPreparedMint oldest_prepared_mint();

}  // namespace snowflake::pg
