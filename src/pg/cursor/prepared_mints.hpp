// If a prepared transaction has minted ids, this code records the tick of the transaction's first
// id.
//
// A prepared transaction has no session and survives restarts. The locks of a prepared transaction
// also survive a restart. PostgreSQL writes the locks to the state file, and releases the locks
// only after new snapshots treat the transaction as ended. So before a transaction is prepared, the
// transaction takes two locks. All prepared transactions of a database share the first lock. So one
// look-up shows a reader whether the database has prepared transactions that minted. The key of the
// second lock contains the tick. No session ever waits for the two locks. pg_locks shows the locks
// as advisory locks of a class that pg_advisory_lock() does not use.
#pragma once

#include "core/settled.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// Called before PREPARE TRANSACTION, while the session's slot is open. The slot stays open until
// the locks belong to the prepared transaction.
void hold_prepared_mint();

// Finds the prepared transaction of the current database that minted first. If no prepared
// transaction has minted, `since` is OpenMints::kNone.
struct OldestPreparedMint {
  uint64_t since;
  TransactionId transaction;
};
OldestPreparedMint oldest_prepared_mint();

}  // namespace snowflake::pg
