#include "pg/clock_watch.hpp"

#include <sys/mman.h>

#include <new>

#include "core/clock.hpp"
#include "pg/settings.hpp"
#include "pg/shared_state.hpp"

namespace snowflake::pg {

namespace {

// Memory of the postmaster's own, shared with its children by fork: unlike PostgreSQL's shared
// memory it is not laid out afresh after a crash, which would forgive every jump.
constinit std::atomic<int64_t>* base_us = nullptr;

// Steps smaller than this are noise of reading two clocks.
constexpr int64_t kNoiseUs = 1000;

}  // namespace

void install_clock_watch() {
  void* page =
      mmap(nullptr, sizeof(*base_us), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not map shared memory: %m")));
  base_us = new (page) std::atomic<int64_t>(clock_offset_us());
}

void start_clock_watch(ClockWatch& watch) {
  watch.last_offset_us.store(clock_offset_us(), std::memory_order_relaxed);
}

void look_at_clock() {
  const int64_t offset = clock_offset_us();
  ClockWatch& watch = state->clock;
  int64_t last = watch.last_offset_us.load(std::memory_order_relaxed);
  if (std::abs(offset - last) < kNoiseUs) return;
  // Of all that see the step, one moves the offset and counts.
  if (!watch.last_offset_us.compare_exchange_strong(last, offset, std::memory_order_relaxed))
    return;
  if (offset > last) return;
  watch.backward_steps.fetch_add(1, std::memory_order_relaxed);
  int64_t largest = watch.largest_backward_us.load(std::memory_order_relaxed);
  while (largest < last - offset && !watch.largest_backward_us.compare_exchange_weak(
                                        largest, last - offset, std::memory_order_relaxed)) {
  }
}

int64_t clock_drift_us() {
  return clock_offset_us() - base_us->load(std::memory_order_relaxed);
}

bool clock_jumped_ahead() {
  return clock_drift_us() > int64_t{max_forward_jump_s} * 1'000'000;
}

void accept_clock() {
  base_us->store(clock_offset_us(), std::memory_order_relaxed);
}

}  // namespace snowflake::pg
