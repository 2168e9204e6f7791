#include "pg/cursor/settled_before.hpp"

#include "core/clock.hpp"
#include "core/lease.hpp"
#include "core/settled.hpp"
#include "pg/checks/facts.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/memory/open_mints.hpp"
#include "pg/cursor/prepared_mints.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

namespace {

uint64_t tick_below(int64_t ms) {
  return layout.tick_of_position(position_below(layout, ms));
}

// Returns 0 if the stored high-water mark is not durable, or if another session is writing the
// mark.
int64_t durable_mark_ms() {
  const Oid oid = present_state_sequences().high_water;
  if (!OidIsValid(oid) || !ConditionalLockRelationOid(oid, AccessShareLock)) return 0;
  int64_t mark_ms = 0;
  if (Relation mark = try_relation_open(oid, NoLock)) {
    SequencePage page{};
    if (SequencePage::try_open(mark, &page)) {
      if (!XLogNeedsFlush(page.lsn())) mark_ms = page.mark();
      page.close();
    }
    relation_close(mark, NoLock);
  }
  UnlockRelationOid(oid, AccessShareLock);
  return mark_ms;
}

// The returned tick (time unit) is at most the stored high-water mark. The returned tick can be
// ahead of the clock, up to the high-water mark of an earlier server run. The settled id, below
// which no new row can appear, does not decrease if the server starts again with an earlier clock.
uint64_t target_tick(const DatabaseState* state) {
  const uint64_t limit = state == nullptr ? 0 : state->limits.read();
  const int64_t mark_ms = limit == 0 ? durable_mark_ms() : 0;
  const uint64_t mark_tick = limit == 0 ? tick_below(mark_ms) : layout.tick_of_position(limit);
  int64_t reach_ms = wall_clock_ms();
  if (state != nullptr)
    reach_ms = std::max(reach_ms, state->limits.floor_ms());
  else if (!is_ahead_of_clock(mark_ms))
    reach_ms = std::max(reach_ms, mark_ms);
  return std::min({mark_tick, tick_below(reach_ms), layout.last_minted_tick()});
}

}  // namespace

SettledAnswer no_answer(HeldBy reason) {
  return {false, 0, reason, 0, InvalidTransactionId, 0};
}

SettledAnswer settled() {
  if (RecoveryInProgress()) return no_answer(HeldBy::standby);
  if (IsolationUsesXactSnapshot()) return no_answer(HeldBy::one_snapshot);

  // If the id layout in shared memory differs from the session's layout, settled() ignores the
  // shared state. The state belongs to a dropped extension, or to a new extension that the session
  // has not looked up yet.
  DatabaseState* const found = find_database_state();
  DatabaseState* const state = found == nullptr || !is_of_session_layout(*found) ? nullptr : found;
  const uint64_t target = target_tick(state);
  OldestMint open{OpenMints::kNone, 0};
  OldestPreparedMint prepared{OpenMints::kNone, InvalidTransactionId};
  const auto open_since = [&] { return (open = oldest_open_mint(*state)).since; };
  const auto prepared_since = [&] { return (prepared = oldest_prepared_mint()).since; };
  uint64_t tick;
  if (state != nullptr) {
    tick = state->settled.settle(layout, state->shard_counters(), target, open_since,
                                 prepared_since, sequence_starts);
  } else {
    // No session has minted an id in the database since the server start. The first session that
    // mints raises the shard counters to the high-water mark before its first id.
    tick = std::min(target, prepared_since());
  }
  if (tick == 0) return no_answer(HeldBy::mark);

  const auto id = static_cast<int64_t>(layout.id(layout.first_position(tick), 0, 0));
  const uint64_t held_since = std::min(open.since, prepared.since);
  if (held_since >= std::max(tick, target))
    return {true, id, HeldBy::nothing, 0, InvalidTransactionId, 0};
  const int64_t since_ms = layout.ms_of_tick(held_since);
  if (open.since <= prepared.since)
    return {true, id, HeldBy::transaction, open.pid, InvalidTransactionId, since_ms};
  return {true, id, HeldBy::prepared, 0, prepared.transaction, since_ms};
}

}  // namespace snowflake::pg
