#include "pg/mark/high_water.hpp"

#include "core/clock.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/clock/synchronization.hpp"
#include "pg/errors/errors_lease.hpp"
#include "pg/checks/clone_check.hpp"
#include "pg/checks/fleet_check.hpp"
#include "pg/checks/facts.hpp"
#include "pg/mark/attach.hpp"
#include "pg/mark/held_mark.hpp"
#include "pg/mark/lost_marks.hpp"
#include "pg/checks/mark_check.hpp"
#include "pg/checks/same_ids.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/settings.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/statistics.hpp"

namespace snowflake::pg {

namespace {

int64_t reserve_ms() {
  return static_cast<int64_t>(reserve_ticks * layout.tick_ms);
}

// Returns the first position (tick and sequence number) that is not before a high-water mark.
uint64_t limit_of(int64_t mark_ms) {
  return position_below(layout, mark_ms);
}

struct MarkUpdate {
  int64_t before;
  XLogRecPtr before_lsn;
  int64_t after;
  XLogRecPtr after_lsn;
  bool ahead;  // the high-water mark is far ahead of the clock
  // True if a command such as setval() has lowered the sequence snowflake.high_water. If `lowered`
  // is true, the session restores the sequence's value and flushes it at once, because a dump would
  // contain the lowered value.
  bool lowered;
};

// Raises the stored high-water mark to `wanted` if the mark is earlier than `needed` + `least`. The
// three arguments are in milliseconds.
MarkUpdate update_mark(Relation mark, int64_t needed, int64_t least, int64_t wanted) {
  DatabaseState& state = *hold.state;
  SequencePage page = SequencePage::open(mark, BUFFER_LOCK_EXCLUSIVE);
  MarkUpdate update{};
  update.before = update.after = page.mark();
  update.before_lsn = update.after_lsn = page.lsn();
  update.ahead = !state.limits.has_recorded(update.before) && is_ahead_of_clock(update.before);
  if (!update.ahead) {
    adopt_stored_mark(state, update.before);
    // If the value of the sequence is less than highest_ms() (the greatest written mark), a command
    // such as setval() has lowered the value.
    const int64_t highest_ms = state.limits.highest_ms();
    update.lowered = page.value() < highest_ms;
    update.after = std::max(update.before, highest_ms);
    if (update.after - needed < least) update.after = std::max(update.after, wanted);
    if (update.after > page.value()) {
      update.after_lsn = page.write_mark(mark, update.after);
      statistics_of(state).mark_extensions.fetch_add(1, std::memory_order_relaxed);
      state.limits.record_written(update.after);
    }
    if (is_created_here(mark)) record_lost_mark(update.after);
  }
  page.close();
  return update;
}

// Writes a new high-water mark if less than half of "snowflake.reserve" is left between the time of
// `position` and the stored mark. The new high-water mark is the time of `position` plus
// "snowflake.reserve", but at most the end of the lease.
MarkUpdate extend_mark(Relation mark, uint64_t position) {
  const int64_t needed = layout.ms_of_tick(layout.tick_of_position(position));
  return update_mark(mark, needed, reserve_ms() / 2,
                     mark_within_lease(layout, position, reserve_ms(), lease_until_ms()));
}

// Returns false if the limit up to which the session may mint ids was withdrawn, or if the sequence
// snowflake.high_water has new storage. REQUIRES a relation lock, because locking a relation
// processes invalidation messages.
bool revalidate(Relation mark) {
  hold.attached = hold.state->limits.is_current(hold.generation) &&
                  mark->rd_rel->relfilenode == hold.mark.storage;
  return hold.attached;
}

// Flushes WAL up to `lsn`, and returns false if WAL was already flushed.
bool flush_mark(XLogRecPtr lsn) {
  if (!XLogNeedsFlush(lsn)) return false;
  XLogFlush(lsn);
  return true;
}

// Raises the limit up to which sessions may mint ids, so that the limit is above `position`. If
// necessary, extend_and_publish() first writes and flushes the next high-water mark. If the stored
// high-water mark is far ahead of the clock, extend_and_publish() does not change the limit, and
// returns the mark. The normal return value of extend_and_publish() is 0.
int64_t extend_and_publish(Relation mark, uint64_t position) {
  begin_mark_write(*hold.state);
  const MarkUpdate update = extend_mark(mark, position);
  // Normally the next high-water mark is already written and flushed, so extend_and_publish() does
  // not access the disk.
  const bool early = !update.lowered && limit_of(update.before) > position;
  const bool flushed = !update.ahead && flush_mark(early ? update.before_lsn : update.after_lsn);
  end_mark_write(flushed);
  if (update.ahead) return update.before;
  if (update.after_lsn != update.before_lsn && early) XLogSetAsyncXactLSN(update.after_lsn);
  const int64_t flushed_ms = early ? update.before : update.after;
  record_clock_use();
  if (publish_limit(*hold.state, hold.generation, flushed_ms)) {
    take_limit(early && update.after > update.before);
  } else {
    reset_hold();
  }
  return 0;
}

// record_minting() is called without locks, at the end of extend_limit() and of extend_early().
void record_minting() {
  end_refusals(*hold.state);
  check_clock_error();
  check_same_ids(*hold.state);
}

// Makes every session call attach() again, because the sequence snowflake.high_water was replaced
// or altered.
void give_up_mark() {
  withdraw_limit(*hold.state);
  reset_hold();
}

// Returns half of "snowflake.reserve" as a difference of positions (tick and sequence number).
uint64_t half_reserve() {
  return layout.first_position(reserve_ticks / 2);
}

}  // namespace

void adopt_stored_mark(DatabaseState& state, int64_t stored_ms) {
  state.limits.adopt(layout, stored_ms, [&](uint64_t floor) { raise_floor(state, floor); });
}

Relation open_mark(Oid oid) {
  LockRelationOid(oid, RowExclusiveLock);
  Relation mark = try_relation_open(oid, NoLock);
  if (mark == nullptr) {
    UnlockRelationOid(oid, RowExclusiveLock);
    reset_state_sequences();
    reset_hold();
  }
  return mark;
}

void take_limit(bool more_is_written) {
  const std::optional<uint64_t> taken = hold.state->limits.take(hold.generation);
  if (!hold.attached || !taken) {
    reset_hold();
    return;
  }
  const uint64_t limit = *taken;
  hold.limit = limit;
  hold.extend_early_at = more_is_written || limit < half_reserve() ? limit : limit - half_reserve();
}

void invalidate_relations(Oid relation) {
  const StateSequences known = remembered_state_sequences();
  if (OidIsValid(relation) && relation != hold.mark.relation && relation != known.high_water &&
      relation != known.seal && relation != known.seal_local) {
    if (!known.complete()) reset_seal();
    return;
  }
  reset_hold();
  reset_seal();
  reset_state_sequences();
}

void extend_limit(uint64_t position, WaitBudget& budget) {
  CHECK_FOR_INTERRUPTS();
  // Since this session read the limit up to which sessions may mint ids, another session may have
  // raised the limit.
  if (hold.good() && hold.state->limits.read() > position) {
    take_limit(false);
    return;
  }
  check_clock();
  Facts facts = facts_of_server();
  facts.position = position;
  // The lease is checked before the high-water mark is raised, because no high-water mark may be
  // later than the end of the lease.
  if (is_in_the_way(facts, budget)) return;

  Relation mark = open_mark(hold.mark.relation);
  if (mark == nullptr) return;
  facts.mark = blocker_here(mark);
  if (is_in_the_way(facts, budget, mark)) return;
  int64_t ahead_ms = 0;
  if (revalidate(mark)) {
    const StateSequences sequences = current_state_sequences();
    if (sequences.high_water != hold.mark.relation || !seal_still_holds(sequences) ||
        !fleet_still_holds(sequences) || !clone_may_mint(*hold.state)) {
      give_up_mark();
    } else if (revalidate(mark)) {
      ahead_ms = extend_and_publish(mark, position);
    }
  }
  // The limit of ids is published before the lock on the sequence snowflake.high_water is released,
  // so that a waiting DROP EXTENSION sees the limit.
  relation_close(mark, RowExclusiveLock);
  if (ahead_ms != 0) wait_for_mark(ahead_ms, budget);
  if (hold.good()) record_minting();
}

void extend_early(uint64_t position) {
  if (hold.extend_early_at == 0) {
    end_refusals(*hold.state);
    take_limit(false);
    if (position < hold.extend_early_at) return;
  }
  hold.extend_early_at = hold.limit;  // prevents a second early write before the limit is raised
  check_clock();
  const Oid oid = hold.mark.relation;
  if (clock_jumped_ahead() || lacks_synchronization() || !clone_may_mint(*hold.state) ||
      !ConditionalLockRelationOid(oid, RowExclusiveLock))
    return;
  Relation mark = try_relation_open(oid, NoLock);
  if (mark != nullptr) {
    const StateSequences sequences = remembered_state_sequences();
    if (revalidate(mark) &&
        (!sequences.complete() || (seal_still_holds(sequences) && fleet_still_holds(sequences)))) {
      begin_mark_write(*hold.state);
      const MarkUpdate update = extend_mark(mark, position);
      end_mark_write(update.lowered && flush_mark(update.after_lsn));
      if (update.after > update.before) XLogSetAsyncXactLSN(update.after_lsn);
    }
    relation_close(mark, NoLock);
  }
  UnlockRelationOid(oid, RowExclusiveLock);
  if (hold.good()) record_minting();
}

void raise_mark(int64_t ms) {
  WaitBudget budget;
  for (;;) {
    if (!hold.good()) {
      attach(budget, false);
      continue;
    }
    if (is_in_the_way(facts_of_server(), budget)) continue;
    if (!may_be_observed(ms, lease_until_ms())) error_beyond_lease(ms, lease_view());
    Relation mark = open_mark(hold.mark.relation);
    if (mark == nullptr) continue;
    check_mark(mark);
    bool done = false;
    int64_t ahead_ms = 0;
    if (revalidate(mark)) {
      if (current_state_sequences().high_water == hold.mark.relation) {
        begin_mark_write(*hold.state);
        const MarkUpdate update = update_mark(mark, ms, 0, ms);
        if (update.ahead) ahead_ms = update.before;
        done = !update.ahead;
        end_mark_write(done && flush_mark(update.after_lsn));
      } else {
        give_up_mark();
      }
    }
    relation_close(mark, RowExclusiveLock);
    if (done) return;
    // The stored high-water mark is already at least `ms`, but another session may lower the mark
    // before the flush.
    if (ahead_ms != 0) wait_for_mark(ahead_ms, budget);
  }
}

}  // namespace snowflake::pg
