// The seal: the permanent layout, tick and epoch of this database's ids.
//
// There are two values: that of CREATE EXTENSION, and that of a restored dump. Both must equal the
// settings, or every function refuses. A dump restores its rows before its seal. So rows of another
// layout have already been decoded wrongly when the seal arrives. Continuing with either layout
// would hide that.
#pragma once

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// The fault of the seal, or none. seal_gone: one of the sequences has been dropped, look them up
// again.
Blocker seal_blocker(const StateSequences& sequences, Seals* seals);

// The same check for a caller that must not block: false only if a contradiction was found. A seal
// that is locked is being dropped, not changed.
bool seal_still_holds(const StateSequences& sequences);

// Whether a session found the seal of this database valid within the last second; and how a session
// records that.
bool seal_checked_lately(const DatabaseState& state);
void record_seal_checked(DatabaseState& state);

// The same for the seal and the fleet (fleet_check.hpp), which other calls check.
bool all_checked_lately(const DatabaseState& state);
void record_all_checked(DatabaseState& state);

// Whether the seal was found valid in this transaction.
extern bool seal_is_good;
inline void reset_seal() {
  seal_is_good = false;
}

// For functions that do not mint: checks once per transaction, or once per second if the database
// also mints.
void require_seal_slowly();
inline void require_seal() {
  if (!seal_is_good) [[unlikely]]
    require_seal_slowly();
}

// The same for a caller that must not wait: false if the seal is locked, for example by DROP
// EXTENSION.
bool try_require_seal();

}  // namespace snowflake::pg
