// Records the tick (time unit) of the first id of each prepared transaction that has minted.
//
// A prepared transaction is not connected to any session. The locks of a prepared transaction
// survive a restart of the server. PostgreSQL releases the locks of a prepared transaction only
// after new snapshots show the result of the transaction. A transaction that has minted takes two
// advisory locks before PREPARE TRANSACTION. Every prepared transaction that has minted holds the
// advisory lock kAnyMint of its database. If the lock kAnyMint is free, no prepared transaction has
// minted, and oldest_prepared_mint() need not read the whole lock table. The key of the advisory
// lock kMintSince contains the tick (time unit) of the transaction's first id. No session ever
// waits for the advisory locks of prepared transactions.
#pragma once

#include "core/settled.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// hold_prepared_mint() must be called before PREPARE TRANSACTION, while the shared memory still
// contains the time of the transaction's first id (open_mints.hpp). The time of the first id stays
// in shared memory until PREPARE TRANSACTION transfers the transaction's locks to the prepared
// transaction.
void hold_prepared_mint();

// Among the prepared transactions of the current database, finds the transaction that minted its
// first id earliest. The member `since` is OpenMints::kNone if no prepared transaction has minted.
struct OldestPreparedMint {
  uint64_t since;
  TransactionId transaction;
};
OldestPreparedMint oldest_prepared_mint();

}  // namespace snowflake::pg
