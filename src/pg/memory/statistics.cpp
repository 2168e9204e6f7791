#include "core/clock_base.hpp"
#include "pg/memory/statistics.hpp"

#include "core/clock.hpp"
#include "pg/memory/mark_hold.hpp"
#include "pg/errors/log_messages.hpp"
#include "pg/errors/refusal.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/datum.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

namespace {

constexpr int64_t kQuietUs = 10'000'000;

constexpr int64_t kSlowFlushUs = 100'000;

// All databases that have no shared state share the Statistics object statistics_of_the_rest. The
// object has one counter of refused calls for each cause. The counter counts the refused calls of
// one database, and starts at 0 again when a call in a different database is refused.
Statistics& statistics_of_the_rest() {
  return shared_state->statistics_of_the_rest;
}

bool is_ours(const Refusals& refusals) {
  return refusals.database.load(std::memory_order_relaxed) == MyDatabaseId;
}

void add_if_ours(RefusalsSeen& seen, const Refusals& refusals) {
  if (!is_ours(refusals)) return;
  seen.count += count_of(refusals.count);
  seen.last_ms = std::max(seen.last_ms, refusals.last_ms.load(std::memory_order_relaxed));
  const int64_t since_ms = refusals.since_ms.load(std::memory_order_relaxed);
  if (since_ms != 0 && (seen.since_ms == 0 || since_ms < seen.since_ms)) seen.since_ms = since_ms;
}

void reset(Refusals& refusals) {
  // `count` minus `count_before` is the number of calls that were refused since refusals began.
  // When the refusals end, a log message reports `count` minus `count_before`, so reset() must not
  // change the difference.
  refusals.count_before.fetch_sub(refusals.count.exchange(0, std::memory_order_relaxed),
                                  std::memory_order_relaxed);
  refusals.last_ms.store(0, std::memory_order_relaxed);
}

void end_refusal(Cause cause, Refusals& refusals) {
  refusals.since_ms.store(0, std::memory_order_relaxed);
  const int64_t lasted_ms = refusals.episode.end();
  if (lasted_ms < 0) return;
  const uint64_t refused = refusals.count.load(std::memory_order_relaxed) -
                           refusals.count_before.load(std::memory_order_relaxed);
  log_refusals_over(cause, refused, lasted_ms);
}

void begin_anew(Refusals& refusals) {
  refusals.count.store(0, std::memory_order_relaxed);
  refusals.since_ms.store(0, std::memory_order_relaxed);
  refusals.episode.end();
}

void end_refusals_of(Statistics& statistics) {
  for (int i = 0; i < kCauses; ++i) {
    Refusals& refusals = statistics.refusals[i];
    if (refusals.since_ms.load(std::memory_order_relaxed) == 0 || !is_ours(refusals)) continue;
    const auto cause = static_cast<Cause>(i);
    if (text_of(cause).is_of_database ||
        monotonic_us() - refusals.last_us.load(std::memory_order_relaxed) > kQuietUs)
      end_refusal(cause, refusals);
  }
}

struct MarkWrite {
  Statistics* statistics;  // null: the session is not writing the high-water mark
  int64_t since_us;
};
constinit MarkWrite mark_write{};

}  // namespace

Statistics& statistics_of(const DatabaseState& state) {
  return state.statistics;
}

Statistics& statistics_of(const DatabaseState* state) {
  return state == nullptr ? statistics_of_the_rest() : statistics_of(*state);
}

RefusalsSeen refusals_seen(const DatabaseState* state, Cause cause) {
  const auto i = static_cast<int>(cause);
  RefusalsSeen seen{};
  add_if_ours(seen, statistics_of_the_rest().refusals[i]);
  if (state != nullptr) add_if_ours(seen, statistics_of(*state).refusals[i]);
  return seen;
}

void reset_statistics(const DatabaseState* state) {
  for (Refusals& refusals : statistics_of_the_rest().refusals)
    if (is_ours(refusals)) reset(refusals);
  if (state == nullptr) return;
  Statistics& statistics = statistics_of(*state);
  for (auto* counter : {&statistics.waits, &statistics.waited_us, &statistics.mark_extensions,
                        &statistics.mark_flushes, &statistics.mark_flush_us,
                        &statistics.commit_waits, &statistics.commit_waited_us})
    counter->store(0, std::memory_order_relaxed);
  statistics.longest_mark_flush_us.store(0, std::memory_order_relaxed);
  for (Refusals& refusals : statistics.refusals) reset(refusals);
  statistics.since_ms.store(wall_clock_ms(), std::memory_order_relaxed);
  statistics.since_us.store(boot_us(), std::memory_order_relaxed);
}

void count_refusal(Blocker blocker) {
  if (shared_state == nullptr) return;
  const DatabaseState* const state = find_database_state();
  Refusals& refusals = statistics_of(state).refusals[static_cast<int>(text_of(blocker).cause)];
  if (refusals.database.exchange(MyDatabaseId, std::memory_order_relaxed) != MyDatabaseId)
    begin_anew(refusals);
  const uint64_t before = refusals.count.fetch_add(1, std::memory_order_relaxed);
  const int64_t clock_ms = wall_clock_ms();
  refusals.last_ms.store(clock_ms, std::memory_order_relaxed);
  refusals.last_us.store(monotonic_us(), std::memory_order_relaxed);
  int64_t none = 0;
  if (refusals.since_ms.compare_exchange_strong(none, clock_ms, std::memory_order_relaxed))
    refusals.count_before.store(before, std::memory_order_relaxed);
  record_next_claim();
  if (refusals.episode.begin())
    log_refusals_begin(blocker, clock_drift_us(),
                       state == nullptr ? 0 : state->limits.highest_ms());
}

void end_refusals(const DatabaseState& state) {
  end_refusals_of(statistics_of(state));
  end_refusals_of(statistics_of_the_rest());
}

void begin_mark_write(DatabaseState& state) {
  reset_mark_write();  // end_mark_write() is not called after an error
  Statistics& statistics = statistics_of(state);
  mark_write = {&statistics, monotonic_us()};
  if (statistics.mark_writers.fetch_add(1) == 0)
    statistics.mark_stalled_us.store(mark_write.since_us);
}

void reset_mark_write() {
  if (mark_write.statistics == nullptr) return;
  Statistics& statistics = *mark_write.statistics;
  mark_write.statistics = nullptr;
  // The compare-and-swap must fail if a new writer has set mark_stalled_us in the meantime.
  int64_t since_us = statistics.mark_stalled_us.load();
  const bool last = statistics.mark_writers.fetch_sub(1) == 1;
  statistics.mark_stalled_us.compare_exchange_strong(since_us, last ? 0 : monotonic_us());
}

void end_mark_write(bool flushed) {
  const int64_t us = monotonic_us() - mark_write.since_us;
  Statistics& statistics = *mark_write.statistics;
  reset_mark_write();
  // If the WAL buffers are full, the write of the high-water mark waits for the disk, before the
  // flush. A slow write of the high-water mark is counted as a flush.
  if (!flushed && us <= kSlowFlushUs) return;
  statistics.mark_flushes.fetch_add(1, std::memory_order_relaxed);
  statistics.mark_flush_us.fetch_add(static_cast<uint64_t>(us), std::memory_order_relaxed);
  raise_to(statistics.longest_mark_flush_us, us);
  if (us > kSlowFlushUs && statistics.slow_flush.due()) log_slow_mark(us / 1000);
}

int64_t mark_stalled_for_us(const Statistics& statistics) {
  const int64_t since_us = statistics.mark_stalled_us.load(std::memory_order_relaxed);
  return since_us == 0 ? 0 : std::max<int64_t>(0, monotonic_us() - since_us);
}

}  // namespace snowflake::pg
