// The seal: a layout in one 64-bit number, so that the value of a sequence can hold it.
//
//   | epoch 41 | time 6 | region 5 | shard 5 | sequence 5 | tick 2 |
//
// 0 means "never sealed": no valid layout has 0 time bits.
#pragma once

#include "core/layout.hpp"

namespace snowflake {

constexpr int64_t seal_of(const Layout& layout) noexcept {
  uint64_t tick = 0;
  while (tick < 3 && kTicks[tick] != layout.tick_ms) ++tick;
  uint64_t seal = static_cast<uint64_t>(layout.epoch_ms);
  seal = seal << 6 | layout.time_bits;
  seal = seal << 5 | layout.region_bits;
  seal = seal << 5 | layout.shard_bits;
  seal = seal << 5 | layout.sequence_bits;
  seal = seal << 2 | tick;
  return static_cast<int64_t>(seal);
}

// The layout of a seal. The seal may be any number, because a superuser can write the table that it
// is read from. Use the result only if check() accepts it.
constexpr Layout layout_of(int64_t value) noexcept {
  const auto seal = static_cast<uint64_t>(value);
  return {static_cast<uint8_t>(seal >> 17 & 63),
          static_cast<uint8_t>(seal >> 12 & 31),
          static_cast<uint8_t>(seal >> 7 & 31),
          static_cast<uint8_t>(seal >> 2 & 31),
          kTicks[seal & 3],
          static_cast<int64_t>(seal >> 23)};
}

// The two seals of a database: from CREATE EXTENSION, and from a restored dump.
struct Seals {
  int64_t local;
  int64_t dumped;
};

static_assert(layout_of(seal_of(parse_layout("twitter", 0, kDefaultEpoch).layout)) ==
              parse_layout("twitter", 0, kDefaultEpoch).layout);

}  // namespace snowflake
