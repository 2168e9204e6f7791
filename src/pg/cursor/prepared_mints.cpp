#include "pg/cursor/prepared_mints.hpp"

#include "pg/memory/open_mints.hpp"

namespace snowflake::pg {

namespace {

// The lock classes 1 and 2 belong to pg_advisory_lock(), so the library uses other numbers.
enum Kind : uint16 { kAnyMint = 21321, kMintSince = 21322 };

LOCKTAG tag_of(Kind kind, uint64_t number) {
  LOCKTAG tag;
  SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, static_cast<uint32>(number >> 32),
                       static_cast<uint32>(number), kind);
  return tag;
}

bool is_mint(const LOCKTAG& tag) {
  return tag.locktag_type == LOCKTAG_ADVISORY && tag.locktag_field1 == MyDatabaseId &&
         tag.locktag_field4 == kMintSince;
}

bool any_prepared_mint() {
  const LOCKTAG tag = tag_of(kAnyMint, 0);
  int count = 0;
  VirtualTransactionId* const holders = GetLockConflicts(&tag, AccessExclusiveLock, &count);
  pfree(holders);
  return count > 0;
}

void keep_lock(const LOCKTAG& tag) {
  (void)LockAcquire(&tag, ShareLock, false, false);
}

}  // namespace

void hold_prepared_mint() {
  if (!mint_record.is_open()) return;
  keep_lock(tag_of(kAnyMint, 0));
  keep_lock(tag_of(kMintSince, mint_record.since()));
}

// GetLockStatusData() is expensive, because it locks the lock manager and copies the whole lock
// table.
OldestPreparedMint oldest_prepared_mint() {
  OldestPreparedMint oldest{OpenMints::kNone, InvalidTransactionId};
  if (max_prepared_xacts == 0 || !any_prepared_mint()) return oldest;
  const LockData* const locks = GetLockStatusData();
  for (int i = 0; i < locks->nelements; ++i) {
    const LockInstanceData& lock = locks->locks[i];
    if (!is_mint(lock.locktag) || lock.holdMask == 0) continue;
    const uint64_t since =
        uint64_t{lock.locktag.locktag_field2} << 32 | lock.locktag.locktag_field3;
    // An advisory lock with a process id belongs to a session that has not completed PREPARE
    // TRANSACTION yet.
    if (since < oldest.since)
      oldest = {since, lock.pid == 0 ? prepared_transaction_of(lock) : InvalidTransactionId};
  }
  return oldest;
}

}  // namespace snowflake::pg
