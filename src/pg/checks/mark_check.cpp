#include "pg/checks/mark_check.hpp"

#include "pg/memory/database_state.hpp"
#include "pg/errors/errors.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/statistics.hpp"

namespace snowflake::pg {

bool is_created_here(Relation mark) {
  return mark->rd_createSubid != InvalidSubTransactionId;
}

Blocker blocker_for_all(Relation mark) {
  return mark->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT ? Blocker::none
                                                                  : Blocker::mark_not_permanent;
}

Blocker blocker_here(Relation mark) {
  if (const Blocker blocker = blocker_for_all(mark); blocker != Blocker::none) return blocker;
  // A rollback, also to a savepoint, restores the old storage of the sequence snowflake.high_water.
  if (storage_is_uncommitted(mark)) return Blocker::mark_uncommitted;
  // A transaction that drops and creates the extension could mint ids above the old high-water
  // mark, which a rollback would restore.
  if (is_created_here(mark) && dropped_in_this_transaction()) return Blocker::extension_recreated;
  return Blocker::none;
}

void check_mark(Relation mark) {
  if (const Blocker blocker = blocker_here(mark); blocker != Blocker::none) error_of_mark(blocker);
}

int64_t set_mark(int64_t ms) {
  const StateSequences sequences = current_state_sequences();
  Relation mark = relation_open(sequences.high_water, RowExclusiveLock);
  check_mark(mark);
  SequencePage page = SequencePage::open(mark, BUFFER_LOCK_EXCLUSIVE);
  // Reads highest_ms under the page lock, because other sessions raise highest_ms under this lock.
  const DatabaseState* const state = find_database_state();
  const int64_t highest_ms = state == nullptr ? 0 : state->limits.highest_ms();
  const int64_t set_ms = std::max(ms, highest_ms);
  const XLogRecPtr written = page.write_mark(mark, set_ms);
  page.close();
  XLogFlush(written);
  relation_close(mark, NoLock);
  return set_ms;
}

}  // namespace snowflake::pg
