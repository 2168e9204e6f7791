// The seal: the permanent layout, tick and epoch of a database's ids.
//
// A database can have two seals: one seal from CREATE EXTENSION, and one seal from a restored dump.
// If the two seals differ, every function raises an error. In a dump, the rows come before the
// seal. So if the layouts differ, rows were already decoded wrongly when the seal is restored. If
// the two seals differed and the functions used the layout of one seal, users would not notice the
// wrong rows.
#pragma once

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Returns the fault of the seal. If the result is none, the session uses the layout of the seal
// from now on. If the result is seal_gone, one of the two sequences was dropped, and the caller
// must look up the two sequences again.
Blocker seal_blocker(const StateSequences& sequences, Seals* seals);

// Checks the seal like seal_blocker(), before ids are minted or decoded. Until the first call of
// check_seal_for_use(), a dump can still replace the seal (dumped_seal.cpp). After a successful
// check_seal_for_use(), the seal is permanent. check_seal_for_use() records the use of the seal in
// is_called of seal_local. The record needs no flush, because everything that follows from an id
// comes later in the WAL.
Blocker check_seal_for_use(const StateSequences& sequences, Seals* seals);
// Returns false if the sequence was dropped or has another seal.
bool record_seal_use(Oid seal_local, int64_t seal);

// Checks the seal like seal_blocker(), for a caller that must not wait. Returns false if the seal
// is locked or invalid.
bool try_go_by_seal();

// Checks the seal for a caller that must not wait. Returns false only if the seal contradicts
// another seal. If the seal is locked, a transaction may be dropping the seal, but no transaction
// is changing the seal.
bool seal_still_holds(const StateSequences& sequences);

// seal_checked_lately() returns whether any session has found the seal of this database valid
// within the last second. record_seal_checked() records a valid seal. If the transaction has
// adopted the seal, nothing is recorded, because a rollback may follow.
bool seal_checked_lately(const DatabaseState& state);
void record_seal_checked(DatabaseState& state, const Seals& seals);

// Like seal_checked_lately() and record_seal_checked(), for the seal together with the fleet
// (fleet_check.hpp).
bool all_checked_lately(const DatabaseState& state);
void record_all_checked(DatabaseState& state, const Seals& seals);

// From now on, the session uses the layout of this seal. If the layout of the session changes, the
// session attaches to the mark again before the session mints.
void use_seal(int64_t seal);

// Uses the seal that another session has found valid within the last second. Returns false if no
// session has checked the seal within the last second.
bool go_by_checked_seal(const DatabaseState& state);

// Returns whether the seal was found valid in this transaction.
extern bool seal_is_good;
inline void reset_seal() {
  seal_is_good = false;
}

// Whether a function reads or makes ids, or only shows the layout or counters.
enum class SealUse { ids, none };

// For functions that do not mint: checks the seal once per transaction, or once per second if the
// database also mints.
void require_seal_slowly(SealUse use = SealUse::ids);
inline void require_seal(SealUse use = SealUse::ids) {
  if (!seal_is_good) [[unlikely]]
    require_seal_slowly(use);
}

// Checks the seal for a function that must not wait. Returns false if the seal is locked, for
// example by DROP EXTENSION.
bool try_require_seal();

}  // namespace snowflake::pg
