// An id consists of these bit fields:
//
//   63                                                             0
//   | time: ticks since the epoch | region | shard | sequence |
//
// A tick is the unit of time, 1 to 1000 ms. The region in an id is the number of the server that
// minted the id. The shard in an id is a number that the caller chose for a group of rows. Region
// and shard together are the origin of the id. A *position* is an id without its origin: tick <<
// sequence_bits | sequence.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>
#include <string_view>

namespace snowflake {

// The allowed lengths of a tick (time unit of ids), in ms.
inline constexpr uint32_t kTicks[] = {1, 10, 100, 1000};

constexpr bool is_tick(uint32_t ms) noexcept {
  for (const uint32_t tick : kTicks)
    if (ms == tick) return true;
  return false;
}

struct Layout {
  uint8_t time_bits;
  uint8_t region_bits;
  uint8_t shard_bits;
  uint8_t sequence_bits;
  uint32_t tick_ms;  // one of kTicks
  int64_t epoch_ms;  // time at which tick 0 begins, in ms since 1970-01-01 UTC

  constexpr unsigned origin_bits() const noexcept { return unsigned{region_bits} + shard_bits; }
  constexpr unsigned id_bits() const noexcept { return time_bits + origin_bits() + sequence_bits; }
  constexpr uint32_t regions() const noexcept { return uint32_t{1} << region_bits; }
  constexpr uint32_t shards() const noexcept { return uint32_t{1} << shard_bits; }
  constexpr uint64_t ids_per_tick() const noexcept { return uint64_t{1} << sequence_bits; }

  // If the four fields of an id have 64 bits in total, ids are minted only in the lower half of the
  // ticks (time units). If the tick of a 64-bit id were greater than last_tick() / 2, the id would
  // be a negative bigint.
  constexpr uint64_t last_tick() const noexcept { return (uint64_t{1} << time_bits) - 1; }
  constexpr uint64_t last_minted_tick() const noexcept {
    return id_bits() == 64 ? last_tick() >> 1 : last_tick();
  }

  // Returns the first position (tick and sequence number) after last_minted_tick().
  constexpr uint64_t end_position() const noexcept {
    return (last_minted_tick() + 1) << sequence_bits;
  }

  constexpr uint64_t tick_of_position(uint64_t position) const noexcept {
    return position >> sequence_bits;
  }
  constexpr uint64_t first_position(uint64_t tick) const noexcept { return tick << sequence_bits; }
  constexpr uint64_t sequence_mask() const noexcept { return ids_per_tick() - 1; }

  constexpr uint32_t origin(uint32_t region, uint32_t shard) const noexcept {
    return region << shard_bits | shard;
  }

  constexpr uint64_t id(uint64_t position, uint32_t region, uint32_t shard) const noexcept {
    return (tick_of_position(position) << (origin_bits() + sequence_bits)) |
           (uint64_t{origin(region, shard)} << sequence_bits) | (position & sequence_mask());
  }
  constexpr uint64_t tick_of(uint64_t id) const noexcept {
    return id >> (origin_bits() + sequence_bits);
  }
  constexpr uint32_t origin_of(uint64_t id) const noexcept {
    return static_cast<uint32_t>(id >> sequence_bits) & ((uint32_t{1} << origin_bits()) - 1);
  }
  constexpr uint32_t region_of(uint64_t id) const noexcept { return origin_of(id) >> shard_bits; }
  constexpr uint32_t shard_of(uint64_t id) const noexcept { return origin_of(id) & (shards() - 1); }
  constexpr uint32_t sequence_of(uint64_t id) const noexcept {
    return static_cast<uint32_t>(id & sequence_mask());
  }
  constexpr uint64_t position_of(uint64_t id) const noexcept {
    return first_position(tick_of(id)) | (id & sequence_mask());
  }

  // True if the time in an id is in the first hour after the epoch. Small integers, such as the
  // values of a plain sequence, decode to times in the first hour after the epoch.
  constexpr bool is_of_first_hour(uint64_t id) const noexcept {
    return tick_of(id) * tick_ms < 3'600'000;
  }

  // Returns the greatest id that any server can mint with this layout.
  constexpr uint64_t last_id() const noexcept {
    return ~uint64_t{0} >> (id_bits() == 64 ? 1 : 64 - id_bits());
  }
  constexpr bool contains(uint64_t id) const noexcept { return id <= last_id(); }

  // Returns the smallest position (tick and sequence number) that gives `origin` (region and shard)
  // an id greater than `id`. `id` may have any origin.
  constexpr uint64_t first_position_after(uint64_t id, uint32_t origin) const noexcept {
    if (origin == origin_of(id)) return position_of(id) + 1;
    return first_position(tick_of(id) + (origin > origin_of(id) ? 0 : 1));
  }

  // Returns the start of a tick in ms since 1970. The returned time does not overflow if the
  // function check() accepts the layout of ids.
  constexpr int64_t ms_of_tick(uint64_t tick) const noexcept {
    return epoch_ms + static_cast<int64_t>(tick * tick_ms);
  }
  // tick_at() rounds a time down to the start of a tick (time unit), and tick_from() rounds the
  // time up. The functions tick_at() and tick_from() REQUIRE ms >= epoch_ms.
  constexpr uint64_t tick_at(int64_t ms) const noexcept {
    const auto since = static_cast<uint64_t>(ms - epoch_ms);
    if (tick_ms == 1) [[likely]]
      return since;
    return since / tick_ms;
  }
  constexpr uint64_t tick_from(int64_t ms) const noexcept {
    return (static_cast<uint64_t>(ms - epoch_ms) + tick_ms - 1) / tick_ms;
  }

  constexpr bool operator==(const Layout&) const noexcept = default;
};

// The limits of a layout: how many bits each field of an id may have, and how late the epoch may
// be. A stored layout (seal.hpp) has 41 bits for the epoch.
inline constexpr unsigned kMinTimeBits = 20;
inline constexpr unsigned kMaxTimeBits = 53;
inline constexpr unsigned kMaxOriginBits = 24;
inline constexpr unsigned kMaxSequenceBits = 22;
inline constexpr int64_t kEpochEnd = int64_t{1} << 41;         // 2039-09-07
inline constexpr int64_t kDefaultEpoch = 1735689600000;        // 2025-01-01
inline constexpr int64_t kEndOfTimestamps = 9224318016000000;  // 294277-01-01, end of timestamptz

enum class LayoutError : uint8_t {
  none,
  syntax,
  time_bits,
  origin_bits,
  sequence_bits,
  total_bits,
  tick,
  preset_tick,
  epoch,
  epoch_syntax,
  end_of_time,
};

// Describes a layout error in a full sentence, for the detail of an error message.
constexpr const char* describe(LayoutError error) noexcept {
  switch (error) {
    case LayoutError::none:
      return "";
    case LayoutError::syntax:
      return "A layout is \"fleet\", \"wide\", \"instagram\", \"twitter\", \"js53\", or the "
             "numbers of bits as time/region+shard/sequence. Without regions write "
             "time/shard/sequence.";
    case LayoutError::time_bits:
      return "The time must have 20 to 53 bits.";
    case LayoutError::origin_bits:
      return "Region and shard together must have 0 to 24 bits.";
    case LayoutError::sequence_bits:
      return "The sequence must have 0 to 22 bits.";
    case LayoutError::total_bits:
      return "The bits add up to more than 64.";
    case LayoutError::tick:
      return "A tick is 1, 10, 100 or 1000 milliseconds.";
    case LayoutError::preset_tick:
      return "The tick of a preset cannot be changed.";
    case LayoutError::epoch:
      return "An epoch lies between 1970-01-01 and 2039-09-07, in whole milliseconds.";
    case LayoutError::epoch_syntax:
      return "An epoch is an ISO date in whole milliseconds, such as \"2025-01-01\" or "
             "\"2025-01-01 12:00:00.000+00\". A date without an offset is in UTC. A number of 13 "
             "digits is read as milliseconds since 1970.";
    case LayoutError::end_of_time:
      return "The time field reaches beyond the year 294276.";
  }
  return "";
}

constexpr LayoutError check(const Layout& layout) noexcept {
  if (layout.time_bits < kMinTimeBits || layout.time_bits > kMaxTimeBits)
    return LayoutError::time_bits;
  if (layout.region_bits > kMaxOriginBits || layout.shard_bits > kMaxOriginBits ||
      layout.origin_bits() > kMaxOriginBits)
    return LayoutError::origin_bits;
  if (layout.sequence_bits > kMaxSequenceBits) return LayoutError::sequence_bits;
  if (layout.id_bits() > 64) return LayoutError::total_bits;
  if (!is_tick(layout.tick_ms)) return LayoutError::tick;
  if (layout.epoch_ms < 0 || layout.epoch_ms >= kEpochEnd) return LayoutError::epoch;
  const auto span = static_cast<uint64_t>(kEndOfTimestamps - layout.epoch_ms) / layout.tick_ms;
  if (layout.last_tick() >= span) return LayoutError::end_of_time;
  return LayoutError::none;
}

struct ParsedLayout {
  Layout layout;
  LayoutError error;
};

namespace detail {

// Removes a decimal number from the front of a text, and returns the number. Returns -1 for a
// number above 999, a leading zero, or a text that begins with no digit.
constexpr int take_number(std::string_view& text) noexcept {
  int value = -1;
  if (text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') return -1;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    value = (value < 0 ? 0 : value) * 10 + (text.front() - '0');
    if (value > 999) return -1;
    text.remove_prefix(1);
  }
  return value;
}

constexpr bool take(std::string_view& text, char c) noexcept {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

struct Preset {
  std::string_view name;
  uint8_t time, region, shard, sequence;
  uint32_t tick_ms;
};

inline constexpr Preset kPresets[] = {
    {"fleet", 41, 5, 8, 10, 1},   {"wide", 41, 5, 13, 5, 1}, {"instagram", 41, 0, 13, 10, 1},
    {"twitter", 41, 5, 5, 12, 1}, {"js53", 38, 0, 7, 8, 10},
};

}  // namespace detail

// Parses a layout: the name of a preset, or numbers of bits as `time/region+shard/sequence` or
// `time/shard/sequence`. If tick_ms is 0, a preset has its own tick. A layout that is given as
// numbers of bits then has a tick of 1 ms.
constexpr ParsedLayout parse_layout(std::string_view text, uint32_t tick_ms,
                                    int64_t epoch_ms) noexcept {
  for (const auto& preset : detail::kPresets) {
    if (text != preset.name) continue;
    const Layout layout{preset.time,     preset.region,  preset.shard,
                        preset.sequence, preset.tick_ms, epoch_ms};
    if (tick_ms != 0 && tick_ms != preset.tick_ms) return {layout, LayoutError::preset_tick};
    return {layout, check(layout)};
  }
  const Layout nothing{};
  const int time = detail::take_number(text);
  if (time < 0 || !detail::take(text, '/')) return {nothing, LayoutError::syntax};
  int region = 0;
  int shard = detail::take_number(text);
  if (shard >= 0 && detail::take(text, '+')) {
    region = shard;
    shard = detail::take_number(text);
  }
  if (shard < 0 || !detail::take(text, '/')) return {nothing, LayoutError::syntax};
  const int sequence = detail::take_number(text);
  if (sequence < 0 || !text.empty()) return {nothing, LayoutError::syntax};

  // The numbers of bits are checked before they are converted to 8-bit integers.
  if (time > int{kMaxTimeBits}) return {nothing, LayoutError::time_bits};
  if (region > int{kMaxOriginBits} || shard > int{kMaxOriginBits})
    return {nothing, LayoutError::origin_bits};
  if (sequence > int{kMaxSequenceBits}) return {nothing, LayoutError::sequence_bits};
  const Layout layout{static_cast<uint8_t>(time),  static_cast<uint8_t>(region),
                      static_cast<uint8_t>(shard), static_cast<uint8_t>(sequence),
                      tick_ms == 0 ? 1u : tick_ms, epoch_ms};
  return {layout, check(layout)};
}

static_assert(parse_layout("instagram", 0, kDefaultEpoch).error == LayoutError::none);
static_assert(parse_layout("instagram", 0, kDefaultEpoch).layout ==
              parse_layout("41/13/10", 0, kDefaultEpoch).layout);
static_assert(parse_layout("fleet", 0, kDefaultEpoch).layout ==
              parse_layout("41/5+8/10", 0, kDefaultEpoch).layout);
static_assert(parse_layout("wide", 0, kDefaultEpoch).layout ==
              parse_layout("41/5+13/5", 0, kDefaultEpoch).layout);
static_assert(parse_layout("js53", 0, kDefaultEpoch).layout.id_bits() == 53);
static_assert(parse_layout("41/13/11", 0, kDefaultEpoch).error == LayoutError::total_bits);

}  // namespace snowflake
