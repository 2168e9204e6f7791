// The durable state of the extension in the current database: the sequences and tables of the
// extension.
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
  // Returns the first fault of the extension's sequences and tables, or none.
  Blocker blocker() const {
    if (complete()) return Blocker::none;
    if (!installed) return Blocker::not_installed;
    // If an extension named snowflake has none of these sequences and tables, the extension is
    // another product.
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

// Returns the cached relations of this session. If no relations are cached, looks the relations up
// as members of the extension. Any role could create other relations with the same names. Raises an
// error if the extension or a relation of the extension is missing. Returns a copy, because taking
// a lock may run the callback that resets the cache.
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

// Returns whether this transaction has dropped an extension that a rollback would restore, also a
// rollback to a savepoint.
bool dropped_in_this_transaction();

}  // namespace snowflake::pg
