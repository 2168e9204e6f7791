#include "pg/wait.hpp"

#include "core/clock.hpp"
#include "pg/clock_watch.hpp"
#include "pg/errors.hpp"
#include "pg/settings.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr int64_t kLongestSleepMs = 100;

}  // namespace

void wait_for_clock(uint32_t shard, Shard& word, uint64_t position, uint64_t lead,
                    Patience& patience) {
  look_at_clock();
  const int64_t clock_ms = wall_clock_ms();
  const uint64_t tick = layout.tick_of_position(position);
  const int64_t next_ms = layout.ms_of_tick(tick);
  const int64_t needed_ms =
      std::max<int64_t>(1, next_ms - static_cast<int64_t>(lead * layout.tick_ms) - clock_ms);

  const int64_t start_us = monotonic_us();
  // A millisecond of grace: both terms below are rounded, and a wait that was granted must not
  // fail.
  const int64_t waited_ms =
      patience.since_us == 0 ? 0 : std::max<int64_t>(0, (start_us - patience.since_us) / 1000 - 1);
  if (waited_ms + needed_ms > max_wait_ms) {
    word.counters.refusals.fetch_add(1, std::memory_order_relaxed);
    // Load alone drives ids no further ahead than one tick past the lead.
    if (needed_ms > max_wait_ms && next_ms > clock_ms + max_lead_ms + layout.tick_ms)
      error_clock_behind(shard, next_ms, clock_ms, needed_ms);
    error_waited_too_long(shard, next_ms, clock_ms, waited_ms);
  }
  if (patience.since_us == 0) {
    patience.since_us = start_us;
    word.counters.waits.fetch_add(1, std::memory_order_relaxed);
  }

  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                  static_cast<long>(std::min(needed_ms, kLongestSleepMs)), clock_wait_event());
  ResetLatch(MyLatch);
  word.counters.waited_us.fetch_add(static_cast<uint64_t>(monotonic_us() - start_us),
                                    std::memory_order_relaxed);
  CHECK_FOR_INTERRUPTS();
}

}  // namespace snowflake::pg
