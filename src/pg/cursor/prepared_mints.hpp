// If a prepared transaction has minted ids, this code records the tick of its first id.
//
// A prepared transaction has no session and survives restarts. The locks of the prepared
// transaction also survive: PostgreSQL writes them to the state file, and releases them only after
// new snapshots treat the transaction as ended. So a transaction takes two locks before it is
// prepared. All such transactions of a database share the first lock, so a reader finds out with
// one look-up whether there are any. The key of the second lock contains the tick. No session ever
// waits for these locks. pg_locks shows them as advisory locks of a class that pg_advisory_lock()
// does not use.
#pragma once

#include "core/settled.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Called before PREPARE TRANSACTION, while the session's slot is open. The slot stays open until
// the locks belong to the prepared transaction.
void hold_prepared_mint();

// Finds the prepared transaction of the current database that minted first. Without one, `since` is
// OpenMints::kNone.
struct OldestPreparedMint {
  uint64_t since;
  TransactionId transaction;
};
OldestPreparedMint oldest_prepared_mint();

}  // namespace snowflake::pg
