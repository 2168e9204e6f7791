// The extension's own sequences and tables in the current database: its durable state.
#pragma once

#include "core/blocker.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct StateSequences {
  bool installed;  // the extension
  Oid high_water;
  Oid seal;
  Oid seal_local;
  Oid fleet;
  Oid origin_fingerprint;
  Oid dumped_seal;
  Oid backfills;  // minting does not read the next two
  Oid late_ids;

  bool complete() const { return count() == kMembers; }
  // The first fault of these relations, or none.
  Blocker blocker() const {
    if (complete()) return Blocker::none;
    if (!installed) return Blocker::not_installed;
    // An extension named snowflake that has none of these relations is another product.
    return count() != 0 ? Blocker::state_missing : Blocker::other_extension;
  }

 private:
  static constexpr int kMembers = 8;
  int count() const {
    return OidIsValid(high_water) + OidIsValid(seal) + OidIsValid(seal_local) + OidIsValid(fleet) +
           OidIsValid(origin_fingerprint) + OidIsValid(dumped_seal) + OidIsValid(backfills) +
           OidIsValid(late_ids);
  }
};

// Returns the cached relations of this session, or looks them up as members of the extension,
// because any role could create relations with the same names. Raises an error if the extension or
// one of the relations is missing. Returns a copy, because taking a lock may run the callback that
// resets the cache.
StateSequences known_state_sequences();
// Always looks the relations up, because ALTER EXTENSION ... DROP SEQUENCE does not invalidate the
// cache.
StateSequences current_state_sequences();
// Always looks the relations up. If the extension or a relation is missing, the result is
// incomplete, without an error.
StateSequences present_state_sequences();
// Returns the cache, perhaps incomplete.
StateSequences remembered_state_sequences();
void reset_state_sequences();

// Whether this transaction has dropped an extension that a rollback, also to a savepoint, would
// restore.
bool dropped_in_this_transaction();

}  // namespace snowflake::pg
