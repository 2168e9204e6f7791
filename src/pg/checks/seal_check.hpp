// The seal: the permanent layout, tick and epoch of a database's ids.
//
// A database can have two seals: one from CREATE EXTENSION, and one from a restored dump. If the
// two seals differ, every function raises an error. A dump restores rows before the seal, so these
// rows were already decoded with the wrong layout. Without the error, users would not notice the
// wrong rows.
#pragma once

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Returns the fault of the seal, or none after the session has switched to the seal's layout. The
// fault seal_gone means that a sequence of the seal was dropped. In this case the caller must look
// up the sequences again.
Blocker seal_blocker(const StateSequences& sequences, Seals* seals);

// Checks the seal like seal_blocker() before ids are minted or decoded, and records that the seal
// is used. A dump cannot replace a used seal (dumped_seal.cpp). The record is is_called of the
// sequence seal_local. The record needs no flush, because everything that follows from an id comes
// later in the WAL.
Blocker check_seal_for_use(const StateSequences& sequences, Seals* seals);
// Returns false if the sequence was dropped or has another seal.
bool record_seal_use(Oid seal_local, int64_t seal);

// Checks the seal like seal_blocker() without waiting. Returns false if the seal is locked or
// invalid.
bool try_go_by_seal();

// Checks the seal without waiting. Returns false only if the seal contradicts another seal. A lock
// on the seal means that a transaction may drop the seal, but does not change the seal.
bool seal_still_holds(const StateSequences& sequences);

// seal_checked_lately() returns whether any session has found the database's seal valid within the
// last second. record_seal_checked() ignores a seal that this transaction has adopted, because a
// rollback may follow.
bool seal_checked_lately(const DatabaseState& state);
void record_seal_checked(DatabaseState& state, const Seals& seals);

// all_checked_lately() and record_all_checked() concern the seal together with the fleet.
bool all_checked_lately(const DatabaseState& state);
void record_all_checked(DatabaseState& state, const Seals& seals);

// Switches the session to the layout of this seal. After a change of the layout, the session
// attaches to the mark again before minting.
void use_seal(int64_t seal);

// Switches to the seal that another session found valid within the last second. Returns false if no
// session checked the seal within the last second.
bool go_by_checked_seal(const DatabaseState& state);

// The seal was found valid in this transaction.
extern bool seal_is_good;
inline void reset_seal() {
  seal_is_good = false;
}

// Whether a function reads or makes ids, or only shows the layout or counters.
enum class SealUse { ids, none };

// Checks the seal once per transaction for functions that do not mint. If the database also mints,
// the seal is checked only once per second.
void require_seal_slowly(SealUse use = SealUse::ids);
inline void require_seal(SealUse use = SealUse::ids) {
  if (!seal_is_good) [[unlikely]]
    require_seal_slowly(use);
}

// Returns false without waiting if the seal is locked, for example by DROP EXTENSION.
bool try_require_seal();

}  // namespace snowflake::pg
