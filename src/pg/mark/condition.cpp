#include "pg/mark/condition.hpp"

#include "core/clock.hpp"
#include "core/obstacle.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/mark/fleet_check.hpp"
#include "pg/mark/high_water.hpp"
#include "pg/memory/lease.hpp"
#include "pg/mark/seal_check.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/settings.hpp"
#include "pg/mark/state_sequences.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

int64_t furthest_ms(const DatabaseState& state) {
  uint64_t furthest = 0;
  const Shard* const words = words_of(state);
  for (uint32_t i = 0; i < word_count(); ++i) furthest = std::max(furthest, words[i].last());
  return furthest == 0 ? 0 : layout.ms_of_tick(layout.tick_of_position(furthest));
}

// False where the page is locked: whoever writes it may be waiting for the disk.
bool try_read_mark(Relation mark, int64_t* mark_ms) {
  SequencePage page{};
  if (!SequencePage::try_open(mark, &page)) return false;
  *mark_ms = page.mark();
  page.close();
  return true;
}

void look_at_mark(Facts& facts, Oid high_water) {
  Relation mark = try_relation_open(high_water, NoLock);
  facts.state_complete = mark != nullptr;
  if (mark == nullptr) return;
  facts.mark_known = try_read_mark(mark, &facts.mark_ms);
  if (!facts.mark_known) facts.mark_ms = facts.highest_mark_ms;
  facts.mark_permanent = mark->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT;
  facts.mark_ahead = is_ahead_of_clock(facts.mark_ms);
  relation_close(mark, NoLock);
}

// Calls wait uninterruptibly where the WAL cannot be written, as every commit does.
bool is_flush_stalled(const DatabaseState* state) {
  constexpr int64_t kStalledUs = 1'000'000;
  return state != nullptr && mark_stalled_for_us(statistics_of(*state)) > kStalledUs;
}

// What is locked against reading is being dropped or altered, and calls wait for it as well.
void look_at_sequences(Facts& facts, Seals& seals) {
  const StateSequences sequences = present_state_sequences();
  facts.state_complete = sequences.complete();
  if (!facts.state_complete) return;
  // What calls take: ALTER SEQUENCE locks against that and not against reading.
  const LOCKMODE write = RecoveryInProgress() ? AccessShareLock : RowExclusiveLock;
  const struct {
    Oid relation;
    LOCKMODE mode;
  } all[] = {{sequences.seal_local, AccessShareLock},
             {sequences.seal, AccessShareLock},
             {sequences.high_water, write},
             {sequences.fleet, AccessShareLock}};
  constexpr int kAll = sizeof(all) / sizeof(all[0]);
  int locked = 0;
  while (locked < kAll && ConditionalLockRelationOid(all[locked].relation, all[locked].mode))
    ++locked;
  facts.state_locked = locked < kAll;
  if (!facts.state_locked) {
    facts.seal = obstacle_of(find_seal_fault(sequences, &seals));
    facts.fleet_remembered = remembered_fleet(sequences);
    look_at_mark(facts, sequences.high_water);
  }
  for (; locked > 0; --locked) UnlockRelationOid(all[locked - 1].relation, all[locked - 1].mode);
}

void look_at_lease(Facts& facts, const DatabaseState* state) {
  facts.leased = leased();
  if (!facts.leased) return;
  const LeaseView lease = lease_view();
  // What is published runs ahead of the clock; what counts is where ids of the region begin here.
  const int64_t begin_ms = state == nullptr ? 0 : state->limits.begin_ms();
  facts.lease_worker_runs = lease_worker_runs();
  facts.region = lease.region;
  facts.lease_until_ms = lease.until_ms;
  facts.region_begins_later = is_ahead_of_clock(std::max(lease.floor_ms, begin_ms));
  facts.fleet_present = lease_fleet();
}

}  // namespace

Condition condition_of_database() {
  look_at_clock();
  Condition condition{};
  Facts facts{};
  Seals seals{};
  DatabaseState* const state = condition.state = find_database_state();
  facts.clock_ms = wall_clock_ms();
  if (state != nullptr) {
    facts.lead_ms = std::max<int64_t>(0, furthest_ms(*state) - facts.clock_ms);
    facts.highest_mark_ms = state->limits.highest_ms();
    condition.covered_ms = layout.ms_of_tick(layout.tick_of_position(state->limits.read()));
  }
  facts.recovery = RecoveryInProgress();
  facts.node_without_place = owns_everything() && citus_is_preloaded();
  facts.read_only_by_default = is_on_for_all("default_transaction_read_only");
  facts.flush_stalled = is_flush_stalled(state);
  facts.clock_jumped = clock_jumped_ahead();
  facts.max_lead_ms = max_lead_ms;
  facts.has_place = has_or_may_take_place();
  look_at_lease(facts, state);
  look_at_sequences(facts, seals);

  condition.obstacle = obstacle(layout, facts);
  condition.clock_ms = facts.clock_ms;
  condition.lead_ms = facts.lead_ms;
  condition.mark_ms = facts.mark_ms;
  condition.sealed = seals.local;
  if (condition.minting() && state != nullptr) end_refusals(*state);
  return condition;
}

}  // namespace snowflake::pg
