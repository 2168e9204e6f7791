// The published limit of a database, and the memory order that it depends on.
//
// A limit is published after the words were raised to the mark, and whoever reads it must see them
// raised: release in publish(), acquire in read(). A class of its own, because ThreadSanitizer can
// check the pair here, and no test on x86 could see it broken.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <atomic>
#include <cstdint>

namespace snowflake {

class Limit {
 public:
  // The first position that may not be claimed; what was done before it was published is visible.
  uint64_t read() const noexcept { return position_.load(std::memory_order_acquire); }

  // Raises the limit, never lowers it. REQUIRES that publishers and withdraw() exclude one another.
  void publish(uint64_t position) noexcept {
    if (position > position_.load(std::memory_order_relaxed))
      position_.store(position, std::memory_order_release);
  }

  // Nothing may be claimed any more by those who read the limit from now on.
  void withdraw() noexcept { position_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> position_;
};

static_assert(sizeof(Limit) == 8 && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace snowflake
