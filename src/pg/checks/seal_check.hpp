// The seal: the permanent layout, tick and epoch of this database's ids.
//
// There are two values: that of CREATE EXTENSION, and that of a restored dump. If they
// differ, every function refuses. A dump restores its rows before its seal. So rows of another
// layout have already been decoded wrongly when the seal arrives. Continuing with either layout
// would hide that.
#pragma once

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// The fault of the seal. If there is none, the session uses the layout of the seal from now on.
// seal_gone: one of the sequences has been dropped, look them up again.
Blocker seal_blocker(const StateSequences& sequences, Seals* seals);

// The same before ids are minted or decoded. Until then a dump can bring another seal
// (dumped_seal.cpp), and afterwards not. This is recorded as is_called of seal_local. The record
// needs no flush: everything that follows from an id is later in the WAL.
Blocker check_seal_for_use(const StateSequences& sequences, Seals* seals);
// Returns false if the sequence was dropped or has another seal.
bool record_seal_use(Oid seal_local, int64_t seal);

// The same as seal_blocker() for a caller that must not block. False if the seal is locked, or has
// a fault.
bool try_go_by_seal();

// The same check for a caller that must not block: false only if a contradiction was found. A seal
// that is locked is being dropped, not changed.
bool seal_still_holds(const StateSequences& sequences);

// Whether a session found the seal of this database valid within the last second; and how a session
// records that. A seal that the transaction has adopted is not recorded: a rollback may follow.
bool seal_checked_lately(const DatabaseState& state);
void record_seal_checked(DatabaseState& state, const Seals& seals);

// The same for the seal and the fleet (fleet_check.hpp), which other calls check.
bool all_checked_lately(const DatabaseState& state);
void record_all_checked(DatabaseState& state, const Seals& seals);

// The session uses the layout of this seal from now on. If its layout changes, it attaches to the
// mark again before it mints.
void use_seal(int64_t seal);

// Uses the seal that another session found valid within the last second. Returns false if no
// session did.
bool go_by_checked_seal(const DatabaseState& state);

// Whether the seal was found valid in this transaction.
extern bool seal_is_good;
inline void reset_seal() {
  seal_is_good = false;
}

// Whether a function reads or makes ids, or only shows the layout or counters.
enum class SealUse { ids, none };

// For functions that do not mint: checks once per transaction, or once per second if the database
// also mints.
void require_seal_slowly(SealUse use = SealUse::ids);
inline void require_seal(SealUse use = SealUse::ids) {
  if (!seal_is_good) [[unlikely]]
    require_seal_slowly(use);
}

// The same for a caller that must not wait: false if the seal is locked, for example by DROP
// EXTENSION.
bool try_require_seal();

}  // namespace snowflake::pg
