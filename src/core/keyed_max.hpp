// Stores the greatest value per key in shared memory, for at most kEntries keys. KeyedMax uses no
// lock, because any process may be killed at any instant.
//
// Values are never removed. When all entries of KeyedMax are in use, all further keys share one
// value, which may be too high but never too low. A key must not be 0, and a value must be
// positive. Memory that is filled with zeros is a valid, empty KeyedMax object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/atomic_max.hpp"

namespace snowflake {

template <size_t kEntries>
class KeyedMax {
 public:
  void raise(uint32_t key, int64_t value) noexcept {
    Entry* const entry = find(key, true);
    raise_to(entry == nullptr ? others_ : entry->value, value);
  }

  // Returns the greatest value that was stored for a key, or 0 if no value was stored.
  int64_t read(uint32_t key) noexcept {
    const Entry* const entry = find(key, false);
    return (entry == nullptr ? others_ : entry->value).load(std::memory_order_relaxed);
  }

 private:
  struct Entry {
    std::atomic<uint32_t> key;
    std::atomic<int64_t> value;
  };

  // An entry is never freed, so find() stops at the first free entry.
  Entry* find(uint32_t key, bool take) noexcept {
    for (size_t i = 0; i < kEntries; ++i) {
      Entry& entry = entries_[(key + i) % kEntries];
      uint32_t holder = entry.key.load(std::memory_order_relaxed);
      if (holder == 0) {
        if (!take) return nullptr;
        if (entry.key.compare_exchange_strong(holder, key, std::memory_order_relaxed))
          return &entry;
      }
      if (holder == key) return &entry;
    }
    return nullptr;
  }

  Entry entries_[kEntries];
  std::atomic<int64_t> others_;
};

}  // namespace snowflake
