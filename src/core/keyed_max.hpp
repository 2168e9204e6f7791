// The greatest value per key, for a bounded number of keys. It uses no lock, because processes
// share the memory and any of them may be killed at any instant.
//
// A value is never discarded. When all entries are taken, further keys share one value, which may
// be too high but never too low. Keys are not 0, and values are positive. It starts from zeroed
// memory.
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

  // The value of a key, or 0.
  int64_t read(uint32_t key) noexcept {
    const Place* const place = find(key, false);
    return (place == nullptr ? others_ : place->value).load(std::memory_order_relaxed);
  }

 private:
  struct Place {
    std::atomic<uint32_t> key;
    std::atomic<int64_t> value;
  };

  // Entries are taken in the order of probing and never freed, so a free one ends a search.
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
