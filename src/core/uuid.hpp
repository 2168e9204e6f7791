// Converts an id to a UUID of version 7 (RFC 9562), and back:
//
//   | field | ms since 1970 | version (7) | upper `rest` | variant (2) | lower `rest` | check |
//   | bits  |            48 |           4 |           12 |           2 |           32 |    30 |
//
// The time in a UUID is the start of the id's tick. In the diagram above, `rest` contains the bits
// of the id below its time, at most 44 bits. UUIDs sort in the order of their ids, and two ids
// never have the same UUID.
//
// The check bits detect a UUID that was not made from an id. The UUID field `rest` has 44 bits, and
// must begin with zeros if ids have fewer than 44 bits below their time. A random UUID has correct
// check bits with a probability of at most 2^-30. In the default layout, ids have 23 bits below
// their time, so 21 of the 44 bits of the UUID field `rest` must be 0. In the default layout, a
// random UUID has 30 correct check bits and 21 zeros in `rest` with a probability of at most 2^-51.
// The check bits of a UUID are not a signature, because anyone can compute check bits.
#pragma once

#include "core/base32.hpp"
#include "core/layout.hpp"

namespace snowflake {

namespace detail {

inline constexpr unsigned kUuidTimeBits = 48;
inline constexpr unsigned kUuidRestBits = 44;
inline constexpr unsigned kUuidCheckBits = 30;
static_assert(64 - kMinTimeBits <= kUuidRestBits, "what is below the time fits, in every layout");
static_assert(kUuidTimeBits + 4 + 2 + kUuidRestBits + kUuidCheckBits == 128);

// The multiplier for multiplicative hashing (Knuth, TAOCP vol. 3, 6.4): 2^64 divided by the golden
// ratio, made odd.
inline constexpr uint64_t kUuidMultiplier = 0x9E3779B97F4A7C15;

constexpr uint64_t uuid_check(uint64_t id) noexcept {
  return id * kUuidMultiplier >> (64 - kUuidCheckBits);
}

// True if every change of a single bit of an id changes the check bits of its UUID. The check bits
// are the upper 30 bits of the product id * kUuidMultiplier modulo 2^64. A change of one bit of the
// id changes id * kUuidMultiplier by plus or minus `change`, which is kUuidMultiplier << bit. The
// lowest check bit is bit 34 of the product id * kUuidMultiplier and has the value 2^34 (`unit`).
// The check bits change if `change` and -`change` (modulo 2^64) are both at least 2^34.
constexpr bool every_bit_shows() noexcept {
  constexpr uint64_t unit = uint64_t{1} << (64 - kUuidCheckBits);
  for (unsigned bit = 0; bit < 64; ++bit) {
    const uint64_t change = kUuidMultiplier << bit;
    if (change < unit || uint64_t{0} - change < unit) return false;
  }
  return true;
}
static_assert(every_bit_shows());

constexpr unsigned rest_bits(const Layout& layout) noexcept {
  return layout.id_bits() - layout.time_bits;
}

}  // namespace detail

// kUuidEndMs is 10889-08-02, the first time whose milliseconds need more than 48 bits. Only layouts
// with at least 48 time bits, or with a longer tick than 1 ms, reach the year 10889.
inline constexpr int64_t kUuidEndMs = int64_t{1} << detail::kUuidTimeBits;

constexpr bool fits_uuid(const Layout& layout, uint64_t id) noexcept {
  return layout.ms_of_tick(layout.tick_of(id)) < kUuidEndMs;
}

// Returns the UUID of an id. REQUIRES layout.contains(id) and fits_uuid(layout, id).
constexpr Wide uuid_of(const Layout& layout, uint64_t id) noexcept {
  const auto ms = static_cast<uint64_t>(layout.ms_of_tick(layout.tick_of(id)));
  const uint64_t rest = id & ((uint64_t{1} << detail::rest_bits(layout)) - 1);
  return {
      ms << 16 | uint64_t{7} << 12 | rest >> 32,
      uint64_t{2} << 62 | (rest & 0xFFFFFFFF) << detail::kUuidCheckBits | detail::uuid_check(id)};
}

enum class UuidError : uint8_t {
  none,
  version,  // not a UUID of version 7
  time,     // the time is not the start of a tick
  rest,     // bits that must be 0 in this layout are set
  check,
};

struct ParsedUuid {
  uint64_t id;
  UuidError error;
};

// Returns the id from which uuid_of() made a UUID, or an error if uuid_of() did not make the UUID.
constexpr ParsedUuid id_of_uuid(const Layout& layout, Wide uuid) noexcept {
  if ((uuid.high >> 12 & 15) != 7 || uuid.low >> 62 != 2) return {0, UuidError::version};
  const auto ms = static_cast<int64_t>(uuid.high >> 16);
  if (ms < layout.epoch_ms) return {0, UuidError::time};
  const uint64_t tick = layout.tick_at(ms);
  if (tick > layout.last_minted_tick() || layout.ms_of_tick(tick) != ms)
    return {0, UuidError::time};
  const unsigned bits = detail::rest_bits(layout);
  const uint64_t rest =
      (uuid.high & 0xFFF) << 32 | (uuid.low >> detail::kUuidCheckBits & 0xFFFFFFFF);
  if (rest >> bits != 0) return {0, UuidError::rest};
  const uint64_t id = tick << bits | rest;
  constexpr uint64_t check_mask = (uint64_t{1} << detail::kUuidCheckBits) - 1;
  if ((uuid.low & check_mask) != detail::uuid_check(id)) return {0, UuidError::check};
  return {id, UuidError::none};
}

}  // namespace snowflake
