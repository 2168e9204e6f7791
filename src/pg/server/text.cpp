#include "pg/server/text.hpp"

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

static_assert(kPostgresEpochMs == (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * int64_t{86400000});

const char* time_text(int64_t unix_ms) {
  // Converting a very large high-water mark to microseconds could overflow and give a time in the
  // past.
  if (unix_ms >= kEndOfTimestamps) return "the far future";
  const TimestampTz at = timestamp_of_ms(unix_ms);
  return IS_VALID_TIMESTAMP(at) ? timestamptz_to_str(at) : "the far future";
}

const char* kept_time_text(int64_t unix_ms) {
  return pstrdup(time_text(unix_ms));
}

const char* date_text(int64_t unix_ms) {
  const TimestampTz at = timestamp_of_ms(unix_ms);
  if (!IS_VALID_TIMESTAMP(at)) return "no date";
  pg_tm tm;
  fsec_t fsec;
  timestamp2tm(at, nullptr, &tm, &fsec, nullptr, nullptr);
  return psprintf("%04d-%02d-%02d", tm.tm_year, tm.tm_mon, tm.tm_mday);
}

const char* span_text(int64_t ms) {
  if (ms < 10000) return psprintf("%lld ms", static_cast<long long>(ms));
  const double s = static_cast<double>(ms) / 1000;
  if (s < 600) return psprintf("%.1f s", s);
  if (s < 36000) return psprintf("%.1f min", s / 60);
  if (s < 864000) return psprintf("%.1f h", s / 3600);
  return psprintf("%.1f days", s / 86400);
}

const char* layout_bits_text(const Layout& layout) {
  if (layout.region_bits != 0)
    return psprintf("%d/%d+%d/%d", layout.time_bits, layout.region_bits, layout.shard_bits,
                    layout.sequence_bits);
  return psprintf("%d/%d/%d", layout.time_bits, layout.shard_bits, layout.sequence_bits);
}

const char* layout_text(const Layout& layout) {
  pg_tm tm;
  fsec_t fsec;
  timestamp2tm(timestamp_of_ms(layout.epoch_ms), nullptr, &tm, &fsec, nullptr, nullptr);
  return psprintf("%s, tick %u ms, epoch %04d-%02d-%02d %02d:%02d:%02d.%03d UTC",
                  layout_bits_text(layout), layout.tick_ms, tm.tm_year, tm.tm_mon, tm.tm_mday,
                  tm.tm_hour, tm.tm_min, tm.tm_sec, static_cast<int>(fsec) / 1000);
}

const char* shards_text(const ShardSet& shards) {
  if (shards.has_all()) return "all";
  StringInfoData text;
  initStringInfo(&text);
  for (size_t i = 0; i < shards.count; ++i) {
    const ShardRange& range = shards.ranges[i];
    appendStringInfo(&text, range.first == range.last ? "%s%u" : "%s%u-%u", i == 0 ? "" : ",",
                     range.first, range.last);
  }
  return text.data;
}

const char* database_name() {
  const char* name = get_database_name(MyDatabaseId);
  return name == nullptr ? "?" : name;
}

}  // namespace snowflake::pg
