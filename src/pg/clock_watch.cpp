#include "pg/clock_watch.hpp"

#include "core/atomic_max.hpp"
#include "core/clock.hpp"
#include "pg/postmaster_memory.hpp"
#include "pg/settings.hpp"
#include "pg/shared_state.hpp"

namespace snowflake::pg {

namespace {

// Steps smaller than this are noise of reading two clocks.
constexpr int64_t kNoiseUs = 1000;

}  // namespace

void start_clock_watch(ClockWatch& watch) {
  watch.last_offset_us.store(clock_offset_us(), std::memory_order_relaxed);
}

void look_at_clock() {
  const int64_t offset = clock_offset_us();
  ClockWatch& watch = shared_state->clock;
  int64_t last = watch.last_offset_us.load(std::memory_order_relaxed);
  if (std::abs(offset - last) < kNoiseUs) return;
  // Of all that see the step, one moves the offset and counts.
  if (!watch.last_offset_us.compare_exchange_strong(last, offset, std::memory_order_relaxed))
    return;
  if (offset > last) return;
  watch.backward_steps.fetch_add(1, std::memory_order_relaxed);
  raise_to(watch.largest_backward_us, last - offset);
}

int64_t clock_drift_us() {
  return clock_offset_us() - postmaster_memory->clock_base_us.load(std::memory_order_relaxed);
}

bool clock_jumped_ahead() {
  return clock_drift_us() > int64_t{max_forward_jump_s} * 1'000'000;
}

void accept_clock() {
  postmaster_memory->clock_base_us.store(clock_offset_us(), std::memory_order_relaxed);
}

}  // namespace snowflake::pg
