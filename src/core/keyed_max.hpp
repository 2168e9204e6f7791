// The greatest value heard for each of a bounded number of keys, in memory that processes share and
// any of which may be killed at any instant: no lock.
//
// Nothing that was heard is ever forgotten. Once all places are taken, further keys share one
// value, so theirs may be too high, never too low. Keys are not 0, values are positive. Starts from
// zeroed memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/atomic_max.hpp"

namespace snowflake {

template <size_t kPlaces>
class KeyedMax {
 public:
  void raise(uint32_t key, int64_t value) noexcept {
    Place* const place = find(key, true);
    raise_to(place == nullptr ? others_ : place->value, value);
  }

  // 0 where nothing was heard.
  int64_t read(uint32_t key) noexcept {
    const Place* const place = find(key, false);
    return (place == nullptr ? others_ : place->value).load(std::memory_order_relaxed);
  }

 private:
  struct Place {
    std::atomic<uint32_t> key;
    std::atomic<int64_t> value;
  };

  // Places are taken in the order of probing and never given back, so a free one ends a search.
  Place* find(uint32_t key, bool take) noexcept {
    for (size_t i = 0; i < kPlaces; ++i) {
      Place& place = places_[(key + i) % kPlaces];
      uint32_t holder = place.key.load(std::memory_order_relaxed);
      if (holder == 0) {
        if (!take) return nullptr;
        if (place.key.compare_exchange_strong(holder, key, std::memory_order_relaxed))
          return &place;
      }
      if (holder == key) return &place;
    }
    return nullptr;
  }

  Place places_[kPlaces];
  std::atomic<int64_t> others_;
};

}  // namespace snowflake
