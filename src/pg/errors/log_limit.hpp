// Limits how often all sessions together log a message.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.hpp"

namespace snowflake::pg {

inline constexpr int64_t kMinuteUs = 60'000'000;
inline constexpr int64_t kDayUs = 1440 * kMinuteUs;

class LogLimit {
 public:
  // Returns true at most once in `pause_us` microseconds, in all sessions together.
  bool due(int64_t pause_us = kMinuteUs) {
    const int64_t now = monotonic_us();
    int64_t last = last_us_.load(std::memory_order_relaxed);
    return (last == 0 || now - last >= pause_us) &&
           last_us_.compare_exchange_strong(last, now, std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> last_us_;  // monotonic; 0: never
};

// Episode is a condition with a beginning and an end, such as an unsynchronized clock. The first
// session that detects the beginning or the end of an episode (a lasting fault) writes a log
// message. The end of an episode is logged only if the beginning was logged.
class Episode {
 public:
  bool ongoing() const { return since_us_.load(std::memory_order_relaxed) != 0; }

  // If begin() returns true, the session must log the beginning of the episode (lasting fault).
  // Only one session receives true.
  bool begin() {
    if (ongoing() || !limit_.due()) return false;
    int64_t none = 0;
    return since_us_.compare_exchange_strong(none, monotonic_us(), std::memory_order_relaxed);
  }

  // end() returns the duration in ms in only one session, which must log the end of the episode.
  // end() returns -1 in other sessions.
  int64_t end() {
    const int64_t since = since_us_.exchange(0, std::memory_order_relaxed);
    return since == 0 ? -1 : (monotonic_us() - since) / 1000;
  }

 private:
  std::atomic<int64_t> since_us_;
  LogLimit limit_;
};

}  // namespace snowflake::pg
