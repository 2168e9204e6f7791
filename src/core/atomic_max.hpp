#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <atomic>

namespace snowflake {

// Raises an atomic variable to at least `value`. The atomic operations are relaxed, so they do not
// order accesses to other memory.
template <template <class> class Word, class T>
void raise_to(Word<T>& word, std::type_identity_t<T> value) noexcept {
  T seen = word.load(std::memory_order_relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace snowflake
