// The seal: the layout, tick and epoch that this database's ids have for ever.
//
// There are two values: what CREATE EXTENSION sealed here, and what a dump brought. They and the
// server's settings must all agree, or every function refuses: a dump restores its rows before its
// seal, so rows restored under another layout have been decoded wrongly by the time the dump's seal
// arrives, and going on with either layout would hide that.
#pragma once

#include "core/obstacle.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// The fault of the seal, or none. seal_gone: one of the sequences has been dropped meanwhile,
// look them up again.
Obstacle look_at_seal(const StateSequences& sequences, Seals* seals);

// The same question for a caller that must not block: false only where a contradiction was
// seen. A seal that is locked is being dropped, not changed.
bool seal_still_holds(const StateSequences& sequences);

// Whether somebody found the seal of this database good within the last second, and who says so.
bool seal_checked_lately(const DatabaseState& state);
void note_seal_checked(DatabaseState& state);

// The same of the seal and of the fleet (fleet_check.hpp), which are not checked by the same calls.
bool all_checked_lately(const DatabaseState& state);
void note_all_checked(DatabaseState& state);

// The seal was found good in this transaction.
extern bool seal_is_good;
inline void forget_seal() {
  seal_is_good = false;
}

// For the functions that do not mint: checks once a transaction, and in fact once a second where
// the database mints too.
void require_seal_slowly();
inline void require_seal() {
  if (!seal_is_good) [[unlikely]]
    require_seal_slowly();
}

// The same for a caller that must not wait: false where the seal is locked, as by DROP EXTENSION.
bool try_require_seal();

}  // namespace snowflake::pg
