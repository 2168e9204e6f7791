// The extension's own sequences and tables in the current database: its durable state.
#pragma once

#include "core/obstacle.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct StateSequences {
  bool installed;  // the extension
  Oid high_water;
  Oid seal;
  Oid seal_local;
  Oid fleet;
  Oid fingerprint;
  Oid dumped_seal;
  Oid backfills;  // these two are not read to mint
  Oid late_ids;

  bool complete() const { return count() == kMembers; }
  // The first fault of theirs, or none.
  Obstacle obstacle() const {
    if (complete()) return Obstacle::none;
    if (!installed) return Obstacle::not_installed;
    // An extension of the same name that has none of them is another product's.
    return count() != 0 ? Obstacle::state_missing : Obstacle::other_extension;
  }

 private:
  static constexpr int kMembers = 8;
  int count() const {
    return OidIsValid(high_water) + OidIsValid(seal) + OidIsValid(seal_local) + OidIsValid(fleet) +
           OidIsValid(fingerprint) + OidIsValid(dumped_seal) + OidIsValid(backfills) +
           OidIsValid(late_ids);
  }
};

// As this session looked them up last, or incomplete: looked up now by membership in the extension,
// for a name alone could be anybody's. By value: taking a lock may run the callback that forgets
// them. An error where the extension, or one of them, is missing.
StateSequences known_state_sequences();
// Looked up now: ALTER EXTENSION ... DROP SEQUENCE tells nobody.
StateSequences current_state_sequences();
// Looked up now, and incomplete where the extension, or one of them, is missing: no error.
StateSequences present_state_sequences();
// As they were last known, perhaps incomplete.
StateSequences remembered_state_sequences();
void forget_state_sequences();

// Whether this transaction has dropped an extension that a rollback, also one to a savepoint, would
// bring back.
bool dropped_in_this_transaction();

}  // namespace snowflake::pg
