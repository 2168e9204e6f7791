#include "pg/clock/clock_watch.hpp"

#include "core/atomic_max.hpp"
#include "core/clock.hpp"
#include "pg/clock/clock_error.hpp"
#include "pg/clock/clock_source.hpp"
#include "pg/errors/log_messages.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/settings.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// A change of the clock offset below 1 ms is not counted as a step, because two clocks cannot be
// read at the same instant.
constexpr int64_t kNoiseUs = 1000;

// A step of the clock back by more than 100 ms is logged even if no shard has to wait.
constexpr int64_t kLoggedUs = 100'000;

constexpr int64_t kYearMs = int64_t{365} * 86400 * 1000;

void record_step_back(ClockWatch& watch, int64_t step_us) {
  const uint64_t before = watch.backward_steps.fetch_add(1, std::memory_order_relaxed);
  raise_to(watch.largest_backward_us, step_us);
  // After a jump of the clock ahead, calls fail with the error clock_jumped and mint no ids. When
  // the clock is set back after a jump ahead, no shard has to wait, because no id was minted during
  // the jump.
  if (watch.ahead.ongoing()) return;
  if (step_us <= int64_t{max_lead_ms} * 1000) {
    if (step_us > kLoggedUs && watch.stepped_back.due())
      log_stepped_back(step_us / 1000, before + 1);
    return;
  }
  raise_to(watch.behind_until_ms, wall_clock_ms() + step_us / 1000);
  if (watch.behind.begin()) log_stepped_back(step_us / 1000, before + 1);
}

void record_step_ahead(ClockWatch& watch, int64_t step_us) {
  const uint64_t before = watch.forward_steps.fetch_add(1, std::memory_order_relaxed);
  raise_to(watch.largest_forward_us, step_us);
  // A step ahead by more than "snowflake.max_forward_jump" is logged as a jump. If the clock was
  // set back and is later set ahead to the correct time, the step ahead is not logged.
  if (step_us <= int64_t{max_lead_ms} * 1000 || clock_jumped_ahead() || clock_drift_us() < kNoiseUs)
    return;
  if (watch.stepped_ahead.due()) log_stepped_ahead(step_us / 1000, before + 1);
}

int64_t written_ahead_ms() {
  return max_lead_ms + static_cast<int64_t>((reserve_ticks + 1) * layout.tick_ms);
}

// The clock at server start may be too far behind a stored high-water mark. Then check_base()
// accepts the clock as soon as it reaches this mark.
void check_base() {
  ClockBase& base = postmaster_memory->clock;
  const int64_t clock_ms = wall_clock_ms();
  if (!base.may_be_replaced(clock_ms, written_ahead_ms())) return;
  const int64_t drift_us = clock_drift_us();
  if (base.replace(clock_offset_us(), clock_ms, written_ahead_ms()))
    log_clock_believed(drift_us / 1000);
}

// Logs when the clock has caught up after a step back, and when a jump ahead begins or ends.
void check_ends(ClockWatch& watch) {
  const int64_t until_ms = watch.behind_until_ms.load(std::memory_order_relaxed);
  if (until_ms != 0 && wall_clock_ms() >= until_ms) {
    watch.behind_until_ms.store(0, std::memory_order_relaxed);
    const int64_t lasted_ms = watch.behind.end();
    if (lasted_ms >= 0) log_caught_up(lasted_ms);
  }
  // A jump of the clock ahead is logged only if an id was minted in this server run. Before the
  // first id is minted, a high-water mark of an earlier server run can still show that the clock
  // was wrong at server start.
  if (clock_jumped_ahead()) {
    if (clock_is_in_use() && watch.ahead.begin()) log_jumped_ahead(clock_drift_us() / 1000);
  } else if (watch.ahead.ongoing()) {
    const int64_t lasted_ms = watch.ahead.end();
    if (lasted_ms >= 0) log_jump_over(clock_drift_us() / 1000, lasted_ms);
  }
}

}  // namespace

void start_clock_watch(ClockWatch& watch) {
  watch.last_offset_us.store(clock_offset_us(), std::memory_order_relaxed);
  find_counter(watch);
}

void check_clock() {
  ClockWatch& watch = shared_state->clock;
  // If several sessions detect a step of the clock, only one session counts the step and moves
  // `last_offset_us`. A session must read `last_offset_us` first and the clock second. In the
  // opposite order, two sessions could count the same step of the clock.
  int64_t last = watch.last_offset_us.load(std::memory_order_acquire);
  const int64_t offset = clock_offset_us();
  if (std::abs(offset - last) >= kNoiseUs &&
      watch.last_offset_us.compare_exchange_strong(last, offset, std::memory_order_release)) {
    if (offset < last) {
      record_step_back(watch, last - offset);
    } else {
      record_step_ahead(watch, offset - last);
    }
  }
  check_base();
  check_ends(watch);
}

void check_clock_error() {
  ClockWatch& watch = shared_state->clock;
  check_counter(watch);
  const ClockBounds bounds = clock_bounds();
  if (!bounds.synchronized) {
    if (watch.unsynchronized.begin()) log_unsynchronized(bounds);
  } else if (watch.unsynchronized.ongoing()) {
    const int64_t lasted_ms = watch.unsynchronized.end();
    if (lasted_ms >= 0) log_synchronized(bounds, lasted_ms);
  }
  const int64_t end_ms = layout.ms_of_tick(layout.last_minted_tick() + 1);
  if (end_ms - wall_clock_ms() < kYearMs && watch.end_is_near.due(kDayUs)) log_end_is_near();
}

bool clock_jumped_ahead() {
  return clock_drift_us() > int64_t{max_forward_jump_s} * 1'000'000;
}

void accept_clock() {
  postmaster_memory->clock.accept(clock_offset_us());
}

void record_mark(int64_t mark_ms) {
  postmaster_memory->clock.record_mark(mark_ms, boot_us(), written_ahead_ms(),
                                       int64_t{max_forward_jump_s} * 1000);
  check_base();
}

bool clock_is_in_use() {
  return postmaster_memory->clock.is_in_use();
}

void record_clock_use() {
  postmaster_memory->clock.record_use();
}

}  // namespace snowflake::pg
