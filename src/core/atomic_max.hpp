// The maximum of what several processes have said.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <atomic>
#include <type_traits>

namespace snowflake {

// Makes the word at least `value`. Relaxed: what else has to be seen with it is the caller's
// matter.
template <template <class> class Word, class T>
void raise_to(Word<T>& word, std::type_identity_t<T> value) noexcept {
  T seen = word.load(std::memory_order_relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace snowflake
