// The seal: the permanent layout, tick and epoch of a database's ids.
//
// A database can have two layouts: one from CREATE EXTENSION, and one from a restored dump. If the
// two layouts of a database differ, every function raises an error. pg_restore restores rows before
// the layout, so rows may already have been decoded with the wrong layout. Without an error, users
// would not notice that rows were decoded with the wrong layout.
#pragma once

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Returns the blocker of an invalid seal. If the seal is valid, the session switches to the layout
// of the seal. If the result is seal_gone, the caller must look up the extension's sequences again.
Blocker seal_blocker(const StateSequences& sequences, Seals* seals);

// Checks the seal like seal_blocker(), and records that ids were minted or decoded with the seal. A
// restored dump cannot replace a used seal (dumped_seal.cpp). The column is_called of the sequence
// snowflake.seal_local shows that the seal is used. Setting is_called needs no flush, because every
// row with an id comes later in the WAL.
Blocker check_seal_for_use(const StateSequences& sequences, Seals* seals);
// Returns false if the sequence snowflake.seal_local was dropped or has another seal.
bool record_seal_use(Oid seal_local, int64_t seal);

// Checks the seal like seal_blocker() without waiting. Returns false if the seal is locked or
// invalid.
bool try_go_by_seal();

// Checks the seal without waiting. seal_still_holds() returns false only if the two layouts of the
// database differ. If the seal is locked, a transaction may drop the seal, but does not change the
// seal.
bool seal_still_holds(const StateSequences& sequences);

// seal_checked_lately() returns whether a session has found the seal valid within the last second.
// record_seal_checked() ignores a seal that this transaction has adopted, because a rollback may
// follow.
bool seal_checked_lately(const DatabaseState& state);
void record_seal_checked(DatabaseState& state, const Seals& seals);

// all_checked_lately() and record_all_checked() concern the seal together with the fleet.
bool all_checked_lately(const DatabaseState& state);
void record_all_checked(DatabaseState& state, const Seals& seals);

// Switches the session to the layout of a seal. If the layout changes, the session must attach to
// the high-water mark again before it mints.
void use_seal(int64_t seal);

// Switches to the layout of the seal, if a session has found the seal valid within the last second.
bool go_by_checked_seal(const DatabaseState& state);

// True if the seal was found valid in this transaction.
extern bool seal_is_good;
inline void reset_seal() {
  seal_is_good = false;
}

enum class SealUse { ids, none };

// Checks the seal once per transaction, for functions that do not mint. In a database that mints,
// the seal is checked at most once per second.
void require_seal_slowly(SealUse use = SealUse::ids);
inline void require_seal(SealUse use = SealUse::ids) {
  if (!seal_is_good) [[unlikely]]
    require_seal_slowly(use);
}

// Returns false without waiting if the seal is locked, for example by DROP EXTENSION.
bool try_require_seal();

}  // namespace snowflake::pg
