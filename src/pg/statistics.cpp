#include "pg/statistics.hpp"

#include "core/clock.hpp"
#include "pg/high_water.hpp"
#include "pg/log_messages.hpp"
#include "pg/settings.hpp"

namespace snowflake::pg {

constinit Statistics* database_statistics = nullptr;

namespace {

// Refusals of single shards or callers are over when none has come for so long.
constexpr int64_t kQuietUs = 10'000'000;

constexpr int64_t kSlowFlushUs = 100'000;

// Whether the cause is one of the whole database: then it is over as soon as anything is minted.
constexpr bool is_of_database(Cause cause) {
  switch (cause) {
    case Cause::clock_jumped:
    case Cause::clock_before_epoch:
    case Cause::mark_ahead:
    case Cause::mark_lost:
    case Cause::seal:
    case Cause::exhausted:
    case Cause::lease:
      return true;
    default:
      return false;
  }
}

void end_refusal(const DatabaseState& state, Cause cause, Refusals& refusals) {
  refusals.since_ms.store(0, std::memory_order_relaxed);
  const int64_t lasted_ms = refusals.episode.end();
  if (lasted_ms < 0) return;
  const uint64_t refused = refusals.count.load(std::memory_order_relaxed) -
                           refusals.count_before.load(std::memory_order_relaxed);
  log_refusals_over(state, cause, refused, lasted_ms);
}

}  // namespace

const char* refusal_label(Cause cause) {
  constexpr const char* kLabels[kCauses] = {
      "clock_behind", "clock_jumped", "clock_before_epoch", "waited_too_long", "mark_ahead",
      "mark_lost",    "seal",         "not_owned",          "id_ahead",        "exhausted",
      "lease",        "read_only",    "commit_wait"};
  return kLabels[static_cast<int>(cause)];
}

Statistics& statistics_of(const DatabaseState& state) {
  return database_statistics[&state - database_states];
}

void clear_statistics(const DatabaseState& state) {
  new (&statistics_of(state)) Statistics{};
}

void reset_statistics(const DatabaseState& state) {
  Statistics& statistics = statistics_of(state);
  for (auto* counter : {&statistics.waits, &statistics.waited_us, &statistics.mark_extensions,
                        &statistics.mark_flushes, &statistics.mark_flush_us,
                        &statistics.commit_waits, &statistics.commit_waited_us})
    counter->store(0, std::memory_order_relaxed);
  statistics.longest_mark_flush_us.store(0, std::memory_order_relaxed);
  for (Refusals& refusals : statistics.refusals) {
    refusals.count.store(0, std::memory_order_relaxed);
    refusals.count_before.store(0, std::memory_order_relaxed);
    refusals.last_ms.store(0, std::memory_order_relaxed);
  }
  statistics.since_ms.store(wall_clock_ms(), std::memory_order_relaxed);
}

void count_refusal(Cause cause) {
  if (shared_state == nullptr) return;
  const DatabaseState* const state = find_or_take_database_state();
  if (state == nullptr) return;
  Refusals& refusals = statistics_of(*state).refusals[static_cast<int>(cause)];
  const uint64_t before = refusals.count.fetch_add(1, std::memory_order_relaxed);
  const int64_t clock_ms = wall_clock_ms();
  refusals.last_ms.store(clock_ms, std::memory_order_relaxed);
  refusals.last_us.store(monotonic_us(), std::memory_order_relaxed);
  int64_t none = 0;
  if (refusals.since_ms.compare_exchange_strong(none, clock_ms, std::memory_order_relaxed))
    refusals.count_before.store(before, std::memory_order_relaxed);
  watch_for_claim();
  if (refusals.episode.begin()) log_refusals_begin(*state, cause);
}

void end_refusals(DatabaseState& state) {
  Statistics& statistics = statistics_of(state);
  for (int i = 0; i < kCauses; ++i) {
    Refusals& refusals = statistics.refusals[i];
    if (refusals.since_ms.load(std::memory_order_relaxed) == 0) continue;
    const auto cause = static_cast<Cause>(i);
    if (is_of_database(cause) ||
        monotonic_us() - refusals.last_us.load(std::memory_order_relaxed) > kQuietUs)
      end_refusal(state, cause, refusals);
  }
}

void count_mark_flush(DatabaseState& state, int64_t us) {
  Statistics& statistics = statistics_of(state);
  statistics.mark_flushes.fetch_add(1, std::memory_order_relaxed);
  statistics.mark_flush_us.fetch_add(static_cast<uint64_t>(us), std::memory_order_relaxed);
  raise_to(statistics.longest_mark_flush_us, us);
  if (us > kSlowFlushUs && statistics.slow_flush.due()) log_slow_mark(us / 1000);
}

}  // namespace snowflake::pg
