#include "pg/clock/wait.hpp"

#include "pg/clock/clock_watch.hpp"
#include "pg/errors/errors.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

struct Wait {
  int64_t clock_ms;
  int64_t needed_ms;
  int64_t waited_ms;

  bool too_long() const { return waited_ms + needed_ms > max_wait_ms; }
};

Wait wait_until(int64_t target_ms, const WaitBudget& budget) {
  check_clock();
  Wait wait{};
  wait.clock_ms = wall_clock_ms();
  wait.needed_ms = std::max<int64_t>(1, target_ms - wait.clock_ms);
  wait.waited_ms = budget.waited_ms();
  return wait;
}

// Sleeps, and counts the wait in the statistics of the database, not of a shard.
void sleep_for_database(const Wait& wait, WaitBudget& budget) {
  sleep_part(budget, wait.needed_ms, clock_wait_event(), [](bool first, int64_t us) {
    const DatabaseState* const state = find_database_state();
    if (state == nullptr) return;
    Statistics& statistics = statistics_of(*state);
    statistics.waits.fetch_add(first ? 1 : 0, std::memory_order_relaxed);
    statistics.waited_us.fetch_add(static_cast<uint64_t>(us), std::memory_order_relaxed);
  });
}

// Returns the clock time at which `position` is exactly `lead` ticks (time units) ahead of the
// clock.
int64_t target_of(uint64_t position, uint64_t lead) {
  return layout.ms_of_tick(layout.tick_of_position(position)) -
         static_cast<int64_t>(lead * layout.tick_ms);
}

}  // namespace

void wait_for_clock(uint32_t shard, Shard& counter, uint64_t position, uint64_t lead,
                    WaitBudget& budget) {
  const Wait wait = wait_until(target_of(position, lead), budget);
  if (wait.too_long()) {
    counter.statistics.refusals.fetch_add(1, std::memory_order_relaxed);
    const int64_t next_ms = layout.ms_of_tick(layout.tick_of_position(position));
    // Unless the clock was set back, an id is at most "snowflake.max_lead" plus one tick (time
    // unit) ahead of the clock.
    if (wait.needed_ms > max_wait_ms && next_ms > wait.clock_ms + max_lead_ms + layout.tick_ms) {
      error_clock_behind(shard, next_ms, wait.clock_ms, wait.needed_ms);
    }
    error_waited_too_long(shard, next_ms, wait.clock_ms, wait.waited_ms);
  }
  sleep_part(budget, wait.needed_ms, clock_wait_event(), [&](bool first, int64_t us) {
    counter.statistics.waits.fetch_add(first ? 1 : 0, std::memory_order_relaxed);
    counter.statistics.waited_us.fetch_add(static_cast<uint64_t>(us), std::memory_order_relaxed);
  });
}

void wait_for_id(int64_t id, uint64_t position, uint64_t lead, WaitBudget& budget) {
  const Wait wait = wait_until(target_of(position, lead), budget);
  if (wait.too_long()) {
    error_id_ahead(id, layout.ms_of_tick(layout.tick_of(static_cast<uint64_t>(id))), wait.clock_ms,
                   lead < lead_ticks ? static_cast<int64_t>(lead * layout.tick_ms) : max_lead_ms);
  }
  sleep_for_database(wait, budget);
}

void wait_for_mark(int64_t mark_ms, WaitBudget& budget) {
  const Wait wait = wait_until(mark_ms - static_cast<int64_t>(lead_ticks * layout.tick_ms), budget);
  if (wait.clock_ms < layout.epoch_ms) {
    error_clock_before_epoch(wait.clock_ms);
  }
  if (wait.too_long()) {
    error_mark_ahead(mark_ms, wait.clock_ms, wait.needed_ms);
  }
  sleep_for_database(wait, budget);
}

}  // namespace snowflake::pg
