// The seal of a database is the permanent layout of its ids, with the tick (time unit) and the
// epoch.
//
// A database can have two layouts: one that CREATE EXTENSION stored, and one from a restored dump.
// If the database has two different layouts, every function raises an error. The program pg_restore
// restores rows before the layout, so rows may already have been decoded with the wrong layout.
// Without an error, users would not notice that rows were decoded with the wrong layout.
#pragma once

#include "core/blocker.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

// Returns a blocker (state that prevents minting) if the stored layout (seal) is invalid. If the
// stored layout is valid, the session switches to the stored layout. If seal_blocker() returns
// seal_gone, the caller must look up the extension's sequences again.
Blocker seal_blocker(const StateSequences& sequences, Seals* seals);

// Calls seal_blocker(). If the stored layout is valid, check_seal_for_use() records that ids are
// minted or decoded with the layout. A restored dump cannot replace a stored layout (seal) that was
// used for ids (dumped_seal.cpp). The column is_called of the sequence snowflake.seal_local shows
// that the stored layout was used. A change of is_called needs no flush, because the WAL record of
// this change precedes the rows with the new ids.
Blocker check_seal_for_use(const StateSequences& sequences, Seals* seals);
// Returns false if the sequence snowflake.seal_local was dropped, or contains a different id layout
// than `seal`.
bool record_seal_use(Oid seal_local, int64_t seal);

// Checks the stored layout like seal_blocker(), but without waiting. Returns false if the stored
// layout is missing or invalid, or if another session has locked a sequence that stores the layout.
bool try_go_by_seal();

// Checks the stored layout without waiting. seal_still_holds() returns false only if a stored
// layout (seal) differs from the layout of the session. If another session has locked the sequence
// snowflake.seal or snowflake.seal_local, seal_still_holds() returns true. Only another session's
// AccessExclusiveLock prevents the comparison. A transaction with this lock may drop the stored
// layout, but cannot replace a layout that was used for ids.
bool seal_still_holds(const StateSequences& sequences);

// seal_checked_lately() returns whether a session has found the stored layout valid within the last
// second. The function record_seal_checked() ignores a layout that this transaction has stored,
// because a rollback may follow.
bool seal_checked_lately(const DatabaseState& state);
void record_seal_checked(DatabaseState& state, const Seals& seals);

// all_checked_lately() returns whether sessions have checked the stored layout (seal) and the fleet
// number within the last second. The fleet number identifies the group of servers that use one
// lease server. The function record_all_checked() records the current time as the time of the last
// check of layout and fleet number.
bool all_checked_lately(const DatabaseState& state);
void record_all_checked(DatabaseState& state, const Seals& seals);

// Makes the session use `seal`, the id layout that the database has stored. If the layout changes,
// the session must call attach() again before it mints.
void use_seal(int64_t seal);

// Makes the calling session use the stored id layout if any session has found the layout valid
// within the last second.
bool go_by_checked_seal(const DatabaseState& state);

// True if this transaction has found the stored layout (seal) valid.
extern bool seal_is_good;
inline void reset_seal() {
  seal_is_good = false;
}

enum class SealUse { ids, none };

// Functions that do not mint check the stored layout (seal) once per transaction. In a database
// that mints, the stored layout (seal) is checked at most once per second.
void require_seal_slowly(SealUse use = SealUse::ids);
inline void require_seal(SealUse use = SealUse::ids) {
  if (!seal_is_good) [[unlikely]]
    require_seal_slowly(use);
}

// If DROP EXTENSION or another command has locked the stored id layout, returns false instead of
// waiting.
bool try_require_seal();

}  // namespace snowflake::pg
