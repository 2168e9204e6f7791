// Generates ids in a program outside PostgreSQL. The generator returns only ids below a time limit
// (mark) that is stored durably in a file (mark_file.hpp). A new run of the program begins at the
// stored mark, above every id of earlier runs, even if the clock was set back.
//
// Ids may repeat after the following faults, which the generator cannot detect:
//
//  - Two programs with different mark files, or a program and a PostgreSQL server, mint ids in the
//    same region, on any machines.
//
//  - The machine or container was cloned together with the mark file.
//
//  - An operator restored or recreated the mark file (stored time limit) while the program's newest
//    id was ahead of the clock.
//
//  - The mark file is on a network file system that does not enforce locks between machines.
//
// If the clock is wrong when the program starts, the times in ids are wrong, but ids do not repeat.
//
// An id is at most `max_lead_ms` ahead of the clock. A call of next_ids() waits for the clock if no
// id up to `max_lead_ms` ahead of the clock is free. A call of next_ids() also waits if the clock
// is behind the last id or the stored mark. A call of next_ids() fails if it would wait for more
// than `max_wait_ms`. If the clock jumps ahead by more than `max_jump_ms`, the generator stops
// raising the upper limit of ids (mark) in the file. Calls of next_ids() fail as soon as ids reach
// the upper limit that is stored in the mark file. Calls of next_ids() succeed again if the clock
// is corrected or the program is restarted. A failed call of next_ids() returns no id. Ids that a
// failed call of next_ids() has claimed are lost.
//
// Thread safety: any number of threads may call next_ids() and next_id(). About once in
// `reserve_ms` milliseconds, one thread writes the time limit (mark) to the file, and the other
// threads wait. After fork(), calls in the child process fail, because these calls would repeat ids
// of the parent process. A child process needs its own region and mark file.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <pthread.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "core/clock.hpp"
#include "core/clock_base.hpp"
#include "core/generator_error.hpp"
#include "core/limits.hpp"
#include "core/mark_file.hpp"
#include "core/blocker.hpp"
#include "core/shard.hpp"

namespace snowflake {

struct GeneratorStatus {
  GeneratorError error = GeneratorError::none;
  int64_t number = 0;  // errno of a failed file operation, or milliseconds of a clock error

  explicit operator bool() const noexcept { return error == GeneratorError::none; }
};

// The default options are equal to the default settings of the PostgreSQL extension.
struct GeneratorOptions {
  int64_t max_lead_ms = 1000;
  // how far the stored time limit (mark) is ahead of the clock; at least two ticks (time units)
  int64_t reserve_ms = 1000;
  int64_t max_wait_ms = 2000;
  int64_t max_jump_ms = 60'000;
};

// Reads the clocks of this machine. Unit tests use simulated clocks instead of GeneratorClocks.
struct GeneratorClocks {
  static int64_t wall_ms() noexcept { return wall_clock_ms(); }
  static int64_t boot_us() noexcept { return snowflake::boot_us(); }
  static int64_t offset_us() noexcept { return clock_offset_us(); }
  static void sleep_ms(int64_t ms) noexcept {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  }
};

namespace detail {

// The number of forks between the first process and this process, counted by pthread_atfork().
inline std::atomic<uint32_t> forks{0};
inline const int forks_counted = pthread_atfork(nullptr, nullptr, [] { ++forks; });

}  // namespace detail

template <class Clocks>
class BasicGenerator {
 public:
  // Creates the file that stores the upper limit of ids (mark) of a region. Call create() once for
  // each region, before you construct the first generator of the region. The time limit (mark) in a
  // new file is more than `max_lead_ms` ahead of the clock. The time limit in a new file is after
  // all ids of an earlier program that used the same clock and options.
  static GeneratorStatus create(const std::string& path, const Layout& layout, uint32_t region,
                                const GeneratorOptions& options = {}) {
    if (!are_valid(layout, region, options)) return {GeneratorError::invalid_argument};
    const int64_t now_ms = Clocks::wall_ms();
    if (const auto time = status_of(layout, now_ms); !time) return time;
    return status_of(MarkFile::create(path, layout, region, now_ms + ahead_ms(layout, options)));
  }

  // The constructor locks the mark file until the generator is destroyed. The time of a generator's
  // first id is not before the time (mark) in the file. So the id is later than all ids of earlier
  // runs. If status() shows an error after construction, every later call fails with the same
  // error. The argument `path` should be an absolute path.
  BasicGenerator(const std::string& path, const Layout& layout, uint32_t region,
                 const GeneratorOptions& options = {})
      : layout_(layout), region_(region), options_(options), forks_(detail::forks) {
    status_ = are_valid(layout, region, options)
                  ? status_of(file_.open(path, layout, region))
                  : GeneratorStatus{GeneratorError::invalid_argument};
    if (!status_) return;
    counters_.reset(new Shard[layout.shards()]());
    limits_.bind(1, file_.mark_ms(), {static_cast<int32_t>(region), 0});
    limits_.adopt(layout, file_.mark_ms(), [this](uint64_t floor) {
      for (uint32_t shard = 0; shard < layout_.shards(); ++shard)
        counters_[shard].raise_floor(floor);
    });
    base_.start(Clocks::offset_us());
    base_.record_mark(file_.mark_ms(), Clocks::boot_us(), ahead_ms(layout, options),
                      options.max_jump_ms);
  }

  GeneratorStatus status() const noexcept { return status_; }

  // Fills `ids` with new ids of a shard, in ascending order.
  GeneratorStatus next_ids(uint32_t shard, std::span<int64_t> ids) noexcept {
    if (!status_) return status_;
    if (shard >= layout_.shards()) return {GeneratorError::invalid_argument};
    const auto lead = static_cast<uint64_t>(options_.max_lead_ms) / layout_.tick_ms;
    for (int64_t wait_ms = options_.max_wait_ms; !ids.empty();) {
      if (detail::forks.load(std::memory_order_relaxed) != forks_) return {GeneratorError::forked};
      const int64_t now_ms = Clocks::wall_ms();
      if (const auto time = status_of(layout_, now_ms); !time) return time;
      const uint64_t now = layout_.tick_at(now_ms);
      const Claim claim =
          counters_[shard].claim(layout_, {now, lead, limits_.read(), 0}, ids.size());
      GeneratorStatus status;
      if (claim.outcome == Outcome::exhausted) status = {GeneratorError::layout_exhausted};
      if (claim.outcome == Outcome::at_limit) status = extend(claim.first);
      if (claim.outcome == Outcome::ahead_of_clock)
        status = wait(layout_.tick_of_position(claim.first) - lead, now_ms, wait_ms);
      if (!status) return status;
      write_ids(layout_, region_, shard, claim.first, claim.count, ids.data());
      ids = ids.subspan(claim.count);
    }
    return {};
  }
  GeneratorStatus next_id(uint32_t shard, int64_t& id) noexcept {
    return next_ids(shard, {&id, 1});
  }

 private:
  static bool are_valid(const Layout& layout, uint32_t region,
                        const GeneratorOptions& options) noexcept {
    constexpr int64_t kDayMs = 86'400'000;
    for (const int64_t ms : {options.max_lead_ms, options.reserve_ms})
      if (ms < 0 || ms > kDayMs) return false;
    return check(layout) == LayoutError::none && region < layout.regions() &&
           options.max_wait_ms >= 0 && options.max_jump_ms >= 0;
  }

  static GeneratorStatus status_of(const Layout& layout, int64_t now_ms) noexcept {
    const Blocker time = time_blocker(layout, now_ms);
    if (time == Blocker::none) return {};
    return {time == Blocker::layout_exhausted ? GeneratorError::layout_exhausted
                                              : GeneratorError::clock_before_epoch};
  }

  static GeneratorStatus status_of(GeneratorError error) noexcept {
    return {error, error == GeneratorError::file_system ? errno : 0};
  }

  static int64_t reserve_ms(const Layout& layout, const GeneratorOptions& options) noexcept {
    return std::max(options.reserve_ms, 2 * int64_t{layout.tick_ms});
  }
  static int64_t ahead_ms(const Layout& layout, const GeneratorOptions& options) noexcept {
    return options.max_lead_ms + reserve_ms(layout, options) + layout.tick_ms;
  }

  // Raises the time limit (mark) in the mark file and then the limit in memory, so that the id at
  // `position` can be claimed.
  GeneratorStatus extend(uint64_t position) noexcept {
    const std::lock_guard<std::mutex> locked(extending_);
    if (limits_.read() > position) return {};
    const int64_t offset_us = Clocks::offset_us();
    base_.replace(offset_us, Clocks::wall_ms(), ahead_ms(layout_, options_));
    const int64_t jump_ms = base_.drift_us(offset_us) / 1000;
    if (jump_ms > options_.max_jump_ms) return {GeneratorError::clock_jumped, jump_ms};
    const int64_t mark_ms =
        mark_within_lease(layout_, position, reserve_ms(layout_, options_), INT64_MAX);
    if (!file_.write(mark_ms)) return status_of(GeneratorError::file_system);
    limits_.record_written(mark_ms);
    limits_.publish(layout_, limits_.generation(), mark_ms, static_cast<LeaseMemory*>(nullptr));
    return {};
  }

  // Sleeps until the clock reaches a tick (time unit of ids), but at most 100 ms, because the clock
  // may be corrected during the sleep.
  GeneratorStatus wait(uint64_t tick, int64_t now_ms, int64_t& left_ms) const noexcept {
    const int64_t behind_ms = layout_.ms_of_tick(tick) - now_ms;
    if (left_ms <= 0)
      return {limits_.read() == 0 ? GeneratorError::mark_ahead : GeneratorError::clock_behind,
              behind_ms};
    const int64_t part_ms = std::min({behind_ms, left_ms, int64_t{100}});
    Clocks::sleep_ms(part_ms);
    left_ms -= part_ms;
    return {};
  }

  const Layout layout_;
  const uint32_t region_;
  const GeneratorOptions options_;
  const uint32_t forks_;
  GeneratorStatus status_;
  MarkFile file_;
  std::unique_ptr<Shard[]> counters_;
  Limits limits_{};
  ClockBase base_{};
  std::mutex extending_;
};

using Generator = BasicGenerator<GeneratorClocks>;

}  // namespace snowflake
