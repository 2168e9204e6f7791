// Uses the headers of the core library to read and write ids. For another layout, change the
// arguments of parse_layout().
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <snowflake/base62.hpp>
#include <snowflake/key_shard.hpp>
#include <snowflake/layout.hpp>

namespace ids {

constexpr snowflake::Layout layout =
    snowflake::parse_layout("fleet", 0, snowflake::kDefaultEpoch).layout;

// REQUIRES that layout.contains(id) is true.
inline std::chrono::sys_time<std::chrono::milliseconds> time_of(uint64_t id) {
  return std::chrono::sys_time<std::chrono::milliseconds>{
      std::chrono::milliseconds{layout.ms_of_tick(layout.tick_of(id))}};
}
inline uint32_t region_of(uint64_t id) {
  return layout.region_of(id);
}
inline uint32_t shard_of(uint64_t id) {
  return layout.shard_of(id);
}
inline uint32_t sequence_of(uint64_t id) {
  return layout.sequence_of(id);
}

inline std::string to_base62(uint64_t id) {
  std::string text(snowflake::kBase62Length, '0');
  snowflake::write_base62(id, text.data());
  return text;
}

// parsed.value is an id only if parsed.error is NumeralError::none.
inline auto from_base62(std::string_view text) {
  return snowflake::read_base62(text);
}

// Throws std::out_of_range unless shards is 1 to layout.shards().
inline uint32_t shard_for(std::string_view key, uint32_t shards = layout.shards()) {
  if (shards < 1 || shards > layout.shards()) throw std::out_of_range("not a number of shards");
  return snowflake::shard_for(key, shards);
}

}  // namespace ids
