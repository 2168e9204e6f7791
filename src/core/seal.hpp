// A seal is a layout that is encoded as one integer, which a sequence can store.
//
// The digits of a seal (encoded layout of ids) are, from the most to the least significant:
//
//  - the epoch, in ms since 1970
//
//  - the number of time bits minus 19 (35 possible values)
//
//  - the number of region bits (25 possible values, 0 to 24)
//
//  - the number of shard bits (25 possible values, 0 to 24)
//
//  - the number of sequence bits (23 possible values, 0 to 22)
//
//  - the index of the tick length in the array kTicks (4 possible values, 0 to 3)
//
// Every seal (encoded layout) is less than 2^62, half of the greatest value of a sequence.
// Monitoring tools warn about a sequence whose value is near its maximum. The seal 0 means that no
// layout is stored. A valid layout has at least 20 time bits, so its encoded form (seal) is not 0.
#pragma once

#include "core/layout.hpp"

namespace snowflake {

namespace detail {

inline constexpr uint64_t kSealTicks = 4;
inline constexpr uint64_t kSealSequences = kMaxSequenceBits + 1;
inline constexpr uint64_t kSealOrigins = kMaxOriginBits + 1;
inline constexpr uint64_t kSealTimes = kMaxTimeBits - kMinTimeBits + 2;
static_assert(uint64_t{kEpochEnd} * kSealTimes * kSealOrigins * kSealOrigins * kSealSequences *
                  kSealTicks <
              uint64_t{1} << 62);

constexpr uint64_t take_digit(uint64_t& number, uint64_t radix) noexcept {
  const uint64_t digit = number % radix;
  number /= radix;
  return digit;
}

}  // namespace detail

constexpr int64_t seal_of(const Layout& layout) noexcept {
  uint64_t tick = 0;
  while (tick < 3 && kTicks[tick] != layout.tick_ms) ++tick;
  uint64_t seal = static_cast<uint64_t>(layout.epoch_ms);
  seal = seal * detail::kSealTimes + (layout.time_bits + 1u - kMinTimeBits);
  seal = seal * detail::kSealOrigins + layout.region_bits;
  seal = seal * detail::kSealOrigins + layout.shard_bits;
  seal = seal * detail::kSealSequences + layout.sequence_bits;
  seal = seal * detail::kSealTicks + tick;
  return static_cast<int64_t>(seal);
}

// Decodes a seal (encoded layout). The argument `value` may be any integer, because a superuser can
// change the sequence that stores the layout. The caller must pass the returned layout to check(),
// because the layout may be invalid.
constexpr Layout layout_of(int64_t value) noexcept {
  auto seal = static_cast<uint64_t>(value);
  Layout layout{};
  layout.tick_ms = kTicks[detail::take_digit(seal, detail::kSealTicks)];
  layout.sequence_bits = static_cast<uint8_t>(detail::take_digit(seal, detail::kSealSequences));
  layout.shard_bits = static_cast<uint8_t>(detail::take_digit(seal, detail::kSealOrigins));
  layout.region_bits = static_cast<uint8_t>(detail::take_digit(seal, detail::kSealOrigins));
  layout.time_bits =
      static_cast<uint8_t>(detail::take_digit(seal, detail::kSealTimes) + kMinTimeBits - 1);
  layout.epoch_ms = static_cast<int64_t>(seal);
  return layout;
}

// A database can have two seals (stored layouts): one from CREATE EXTENSION, and one from a
// restored dump.
struct Seals {
  int64_t local;
  int64_t dumped;
  bool used;         // ids may exist, so the layout can no longer change
  bool uncommitted;  // the transaction that stored a layout may roll back
};

static_assert(layout_of(seal_of(parse_layout("twitter", 0, kDefaultEpoch).layout)) ==
              parse_layout("twitter", 0, kDefaultEpoch).layout);

}  // namespace snowflake
