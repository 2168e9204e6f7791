// The returned texts are allocated in the current memory context.
#pragma once

#include "core/layout.hpp"
#include "core/shard_set.hpp"

namespace snowflake::pg {

// The number of milliseconds from 1970 to 2000. The type timestamptz counts microseconds from the
// start of the year 2000.
inline constexpr int64_t kPostgresEpochMs = 946684800000;
constexpr int64_t timestamp_of_ms(int64_t unix_ms) {
  return (unix_ms - kPostgresEpochMs) * 1000;
}
const char* time_text(int64_t unix_ms);  // overwritten by the next call
const char* kept_time_text(int64_t unix_ms);
const char* date_text(int64_t unix_ms);  // for example "2025-01-01", in UTC

// Returns a time span as text, for example "350 ms", "12.5 s" or "3.0 h".
const char* span_text(int64_t ms);

// layout_bits_text() returns, for example, "41/5+8/10". layout_text() returns, for example,
// "41/5+8/10, tick 1 ms, epoch 2025-01-01 00:00:00.000 UTC".
const char* layout_bits_text(const Layout& layout);
const char* layout_text(const Layout& layout);

// Returns a set of shards as text, for example "all" or "0-127,200".
const char* shards_text(const ShardSet& shards);

// Returns "?" instead of the name if the session's database was dropped.
const char* database_name();

}  // namespace snowflake::pg
