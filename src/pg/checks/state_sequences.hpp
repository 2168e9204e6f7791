// The sequences and tables that contain the durable state of the extension in the current database.
#pragma once

#include "core/blocker.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct StateSequences {
  bool installed;
  Oid high_water;
  Oid seal;
  Oid seal_local;
  Oid fleet;
  Oid origin_fingerprint;
  Oid dumped_seal;
  Oid backfills;  // for migrations, like `late_ids`
  Oid late_ids;

  bool complete() const { return count() == kMembers; }
  Blocker blocker() const {
    if (complete()) return Blocker::none;
    if (!installed) return Blocker::not_installed;
    // An extension named snowflake that lacks every sequence and table of StateSequences is another
    // product.
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

// Returns the OIDs of the sequences and tables from the session's cache. If the cache is not
// complete, known_state_sequences() finds the OIDs among the members of the extension. Relations
// that are not members of the extension are ignored, because any role can create relations with the
// same names. Raises an error if the extension or one of its relations is missing. Returns a copy
// of the cached OIDs, because a request for a lock can run the callback that resets the cache.
StateSequences known_state_sequences();
// current_state_sequences() uses no cache, because the removal of a sequence from the extension
// does not invalidate the cache.
StateSequences current_state_sequences();
// present_state_sequences() never uses the cache. present_state_sequences() reports no error for a
// missing sequence or table, but returns an incomplete result.
StateSequences present_state_sequences();
StateSequences remembered_state_sequences();
void reset_state_sequences();

// Returns whether a rollback of this transaction, also to a savepoint, would restore a dropped
// extension.
bool dropped_in_this_transaction();

}  // namespace snowflake::pg
