// How often a message may come: kept in shared memory, so that all sessions together keep to it.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.hpp"

namespace snowflake::pg {

inline constexpr int64_t kMinuteUs = 60'000'000;
inline constexpr int64_t kDayUs = 1440 * kMinuteUs;

class LogLimit {
 public:
  // Whether the message may come now; then not again for `pause_us`, for whoever asks.
  bool due(int64_t pause_us = kMinuteUs) {
    const int64_t now = monotonic_us();
    int64_t last = last_us_.load(std::memory_order_relaxed);
    return (last == 0 || now - last >= pause_us) &&
           last_us_.compare_exchange_strong(last, now, std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> last_us_;  // by the monotonic clock; 0: never
};

// Something that lasts: begun by whoever sees it first, ended by whoever sees it gone. Only what
// was announced has an end to announce.
class Episode {
 public:
  bool ongoing() const { return since_us_.load(std::memory_order_relaxed) != 0; }

  // True for the one caller that is to announce the beginning.
  bool begin() {
    if (ongoing() || !limit_.due()) return false;
    int64_t none = 0;
    return since_us_.compare_exchange_strong(none, monotonic_us(), std::memory_order_relaxed);
  }

  // How long it lasted, in ms, for the one caller that is to announce the end; -1 for the others.
  int64_t end() {
    const int64_t since = since_us_.exchange(0, std::memory_order_relaxed);
    return since == 0 ? -1 : (monotonic_us() - since) / 1000;
  }

 private:
  std::atomic<int64_t> since_us_;
  LogLimit limit_;
};

}  // namespace snowflake::pg
