// Records the tick of the first id of each prepared transaction that has minted.
//
// A prepared transaction has no session and survives restarts, and so do its locks. PostgreSQL
// stores the locks in the state file, and releases the locks only after new snapshots treat the
// transaction as ended. Before a transaction is prepared, the transaction therefore takes two
// locks. All prepared transactions of a database share the first lock, so one look-up shows whether
// any prepared transaction has minted. The key of the second lock contains the tick. No session
// ever waits for the two locks. pg_locks shows the locks as advisory locks of a class that
// pg_advisory_lock() does not use.
#pragma once

#include "core/settled.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Called before PREPARE TRANSACTION, while the session's slot is open. The slot stays open until
// the locks belong to the prepared transaction.
void hold_prepared_mint();

// Finds the prepared transaction of the current database that minted first. `since` is
// OpenMints::kNone if no prepared transaction has minted.
struct OldestPreparedMint {
  uint64_t since;
  TransactionId transaction;
};
OldestPreparedMint oldest_prepared_mint();

}  // namespace snowflake::pg
