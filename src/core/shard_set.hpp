// A set of shards is written as "all", or as numbers and ranges, such as "0-1023,2048".
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace snowflake {

struct ShardRange {
  uint32_t first;
  uint32_t last;

  constexpr bool operator==(const ShardRange&) const = default;
};

// A set of shards as ascending, disjoint ranges of shard numbers. The caller owns the memory of the
// ranges.
struct ShardSet {
  const ShardRange* ranges;
  size_t count;

  constexpr bool contains(uint32_t shard) const noexcept {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (shard > ranges[middle].last)
        low = middle + 1;
      else if (shard < ranges[middle].first)
        high = middle;
      else
        return true;
    }
    return false;
  }
  constexpr uint32_t largest() const noexcept { return ranges[count - 1].last; }
  constexpr bool has_all() const noexcept;
};

enum class ShardSetError : uint8_t { none, empty, syntax, number, backwards, overlap, too_many };

constexpr const char* describe(ShardSetError error) noexcept {
  switch (error) {
    case ShardSetError::none:
      return "";
    case ShardSetError::empty:
      return "The list is empty.";
    case ShardSetError::syntax:
      return "Write \"all\", or shards and ranges in ascending order, such as \"0-1023,2048\".";
    case ShardSetError::number:
      return "A shard is a number from 0 to 16777215.";
    case ShardSetError::backwards:
      return "In a range, the last shard is before the first.";
    case ShardSetError::overlap:
      return "Each shard may appear only once, in ascending order.";
    case ShardSetError::too_many:
      return "The list has more than 1024 entries.";
  }
  return "";
}

inline constexpr size_t kMaxShardRanges = 1024;
inline constexpr uint32_t kMaxShard = (uint32_t{1} << 24) - 1;

constexpr bool ShardSet::has_all() const noexcept {
  return count == 1 && ranges[0] == ShardRange{0, kMaxShard};
}

struct ParsedShardSet {
  size_t count;
  ShardSetError error;
};

namespace detail {

constexpr void skip_blanks(std::string_view& text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

constexpr ShardSetError take_shard(std::string_view& text, uint32_t& shard) noexcept {
  skip_blanks(text);
  if (text.empty() || text.front() < '0' || text.front() > '9') return ShardSetError::syntax;
  shard = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    shard = shard * 10 + static_cast<uint32_t>(text.front() - '0');
    if (shard > kMaxShard) return ShardSetError::number;
    text.remove_prefix(1);
  }
  skip_blanks(text);
  return ShardSetError::none;
}

}  // namespace detail

// Parses the text of a set of shards. The array `out` must have room for kMaxShardRanges ranges.
constexpr ParsedShardSet parse_shard_set(std::string_view text, ShardRange* out) noexcept {
  detail::skip_blanks(text);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.empty()) return {0, ShardSetError::empty};
  if (text == "all") {
    out[0] = {0, kMaxShard};
    return {1, ShardSetError::none};
  }
  size_t count = 0;
  for (;;) {
    if (count == kMaxShardRanges) return {0, ShardSetError::too_many};
    ShardRange range{};
    if (const auto error = detail::take_shard(text, range.first); error != ShardSetError::none)
      return {0, error};
    range.last = range.first;
    if (!text.empty() && text.front() == '-') {
      text.remove_prefix(1);
      if (const auto error = detail::take_shard(text, range.last); error != ShardSetError::none)
        return {0, error};
      if (range.last < range.first) return {0, ShardSetError::backwards};
    }
    if (count > 0 && range.first <= out[count - 1].last) return {0, ShardSetError::overlap};
    out[count++] = range;
    if (text.empty()) return {count, ShardSetError::none};
    if (text.front() != ',') return {0, ShardSetError::syntax};
    text.remove_prefix(1);
  }
}

}  // namespace snowflake
