#include "pg/checks/database_health.hpp"

#include "core/clock.hpp"
#include "pg/clock/clock_error.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/checks/clone_check.hpp"
#include "pg/checks/fleet_check.hpp"
#include "pg/checks/facts.hpp"
#include "pg/checks/mark_check.hpp"
#include "pg/checks/read_only.hpp"
#include "pg/checks/same_ids.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/memory/lease_state.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/settings.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

int64_t furthest_ms(const DatabaseState& state) {
  uint64_t furthest = 0;
  for (const Shard& counter : state.shard_counters()) furthest = std::max(furthest, counter.last());
  return furthest == 0 ? 0 : layout.ms_of_tick(layout.tick_of_position(furthest));
}

// Returns false without waiting if another session has locked the page of the high-water mark.
bool try_read_mark(Relation mark, int64_t* mark_ms) {
  SequencePage page{};
  if (!SequencePage::try_open(mark, &page)) return false;
  *mark_ms = page.mark();
  page.close();
  return true;
}

void gather_mark(Facts& facts, Oid high_water) {
  Relation mark = try_relation_open(high_water, NoLock);
  if (mark == nullptr) {
    facts.state = Blocker::state_missing;
    return;
  }
  facts.mark = blocker_for_all(mark);
  // A relation that is not permanent, such as an unlogged sequence, has no file on a standby.
  facts.mark_known = facts.mark == Blocker::none && try_read_mark(mark, &facts.mark_ms);
  relation_close(mark, NoLock);
}

// Calls that wait for a flush of WAL cannot be cancelled. If a flush of WAL takes longer than 1 s,
// the view `health` shows a state that prevents minting.
bool is_flush_stalled(const DatabaseState* state) {
  constexpr int64_t kStalledUs = 1'000'000;
  return state != nullptr && mark_stalled_for_us(statistics_of(*state)) > kStalledUs;
}

// If a sequence of the extension is locked, another session is dropping or altering the sequence.
void gather_sequences(Facts& facts) {
  const StateSequences sequences = present_state_sequences();
  facts.state = sequences.blocker();
  if (facts.state != Blocker::none) return;
  // RowExclusiveLock is the lock mode of calls that mint. RowExclusiveLock conflicts with ALTER
  // SEQUENCE, but not with reading the sequence.
  const LOCKMODE write = RecoveryInProgress() ? AccessShareLock : RowExclusiveLock;
  const struct {
    Oid relation;
    LOCKMODE mode;
  } all[] = {{sequences.seal_local, AccessShareLock},
             {sequences.seal, AccessShareLock},
             {sequences.high_water, write},
             {sequences.fleet, AccessShareLock},
             {sequences.origin_fingerprint, AccessShareLock}};
  constexpr int kAll = sizeof(all) / sizeof(all[0]);
  int locked = 0;
  while (locked < kAll && ConditionalLockRelationOid(all[locked].relation, all[locked].mode))
    ++locked;
  facts.state_locked = locked < kAll;
  if (!facts.state_locked) {
    facts.seal = seal_blocker(sequences, &facts.seals);
    facts.fleet_remembered = remembered_fleet(sequences);
    facts.moved = moved_since(sequences);
    gather_mark(facts, sequences.high_water);
  }
  for (; locked > 0; --locked) UnlockRelationOid(all[locked - 1].relation, all[locked - 1].mode);
}

const char* advice_on_same_ids(const DatabaseState& state) {
  const SameIds same = find_same_ids(state);
  if (!same.found()) return nullptr;
  return psprintf(
      "Database \"%s\" mints shard %u in the same region. If the ids of the two databases must "
      "differ, run %s, and connect again.",
      same.database, same.shard, same.statement);
}

}  // namespace

DatabaseHealth database_health() {
  check_clock();
  DatabaseHealth health{};
  Facts facts{};
  gather_sequences(facts);
  facts.layout_unknown =
      facts.state != Blocker::none || facts.state_locked || facts.seal != Blocker::none;
  gather_server_facts(facts);
  DatabaseState* const state = health.state = find_database_state();
  if (state != nullptr) {
    facts.lead_ms = std::max<int64_t>(0, furthest_ms(*state) - facts.clock_ms);
    health.covered_ms = layout.ms_of_tick(layout.tick_of_position(state->limits.read()));
  }
  facts.position = position_below(layout, facts.clock_ms);
  facts.recovery = RecoveryInProgress();
  facts.read_only_by_default = is_read_only_by_default();
  facts.commits_refused =
      is_on_for_all("snowflake.commit_wait", PGC_S_DATABASE_USER) && !clock_bounds().synchronized;
  facts.flush_stalled = is_flush_stalled(state);
  facts.no_slot = !has_or_may_take_state();
  // The call of highest_ms() must follow the read of the stored high-water mark. If highest_ms()
  // were called first, a high-water mark that another session writes afterwards would look like a
  // mark of an earlier server run.
  if (const DatabaseState* const now = find_database_state())
    facts.highest_mark_ms = now->limits.highest_ms();
  if (!facts.mark_known) facts.mark_ms = facts.highest_mark_ms;
  if (facts.mark_known) {
    record_mark(facts.mark_ms);
    facts.clock_jumped = clock_jumped_ahead();
  }

  health.blocker = blocker(layout, facts);
  health.cloned = facts.moved.any() && !facts.recovery;
  health.clock_ms = facts.clock_ms;
  health.lead_ms = facts.lead_ms;
  health.mark_ms = facts.mark_ms;
  health.sealed = facts.seals.local;
  health.conflict = reports_region() ? region_conflict() : nullptr;
  if (health.minting() && state != nullptr) {
    end_refusals(*state);
    health.same_ids = advice_on_same_ids(*state);
  }
  return health;
}

}  // namespace snowflake::pg
