#include "pg/settings.hpp"

#include <algorithm>
#include <climits>

#include "core/clock.hpp"
#include "pg/errors.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

constinit Layout layout{};
constinit ShardSet owned_shards{};
constinit const char* owned_shards_text = nullptr;
constinit int max_databases = 128;
constinit int max_lead_ms = 100;
constinit int max_forward_jump_s = 3600;
constinit int sequence_spread = 0;
constinit int default_shard = -1;
constinit int max_wait_ms = 2000;
constinit uint64_t lead_ticks = 0;
constinit uint64_t reserve_ticks = 0;

namespace {

constinit char* layout_text = nullptr;
constinit char* epoch_text = nullptr;
constinit char* owned_text = nullptr;
constinit int tick_setting = 0;
constinit int reserve_ms = 1000;

// Thirteen digits are milliseconds since 1970, the form in which other products' epochs are
// published; anything else is a timestamp, in UTC where it names no zone.
bool parse_epoch(const char* text, int64_t* epoch_ms) {
  if (strlen(text) == 13 && strspn(text, "0123456789") == 13) {
    *epoch_ms = strtoll(text, nullptr, 10);
    return true;
  }
  char buffer[MAXDATELEN + MAXDATEFIELDS];
  char* field[MAXDATEFIELDS];
  int ftype[MAXDATEFIELDS];
  int fields = 0;
  if (ParseDateTime(text, buffer, sizeof(buffer), field, ftype, MAXDATEFIELDS, &fields) != 0)
    return false;

  // An epoch that depends on when it is read is none.
  for (int i = 0; i < fields; ++i) {
    int value = 0;
    if (ftype[i] == DTK_STRING && DecodeSpecial(i, field[i], &value) == RESERV &&
        (value == DTK_NOW || value == DTK_TODAY || value == DTK_TOMORROW || value == DTK_YESTERDAY))
      return false;
  }

  pg_tm tm;
  fsec_t fsec;
  int dtype = 0;
  int tz = 0;
  pg_tz* const zone = session_timezone;
  session_timezone = pg_tzset("GMT");
  const int failed = decode_date_time(field, ftype, fields, &dtype, &tm, &fsec, &tz);
  session_timezone = zone;

  Timestamp at = 0;
  if (failed != 0 || dtype != DTK_DATE || tm2timestamp(&tm, fsec, &tz, &at) != 0) return false;
  if (at % 1000 != 0) return false;
  *epoch_ms = at / 1000 + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * int64_t{86400000};
  return true;
}

// GUC_check_errdetail() takes errno along, which clang's -Wformat-security wants as a literal.
bool refuse(const char* detail) {
  GUC_check_errdetail("%s", detail);
  return false;
}

bool check_layout(char** value, void**, GucSource) {
  const auto parsed = parse_layout(*value, 0, kDefaultEpoch);
  return parsed.error == LayoutError::none || refuse(describe(parsed.error));
}

bool check_tick(int* value, void**, GucSource) {
  return *value == 0 || *value == 1 || *value == 10 || *value == 100 || *value == 1000 ||
         refuse(describe(LayoutError::tick));
}

bool check_epoch(char** value, void**, GucSource) {
  int64_t epoch_ms = 0;
  if (!parse_epoch(*value, &epoch_ms))
    return refuse(
        "An epoch is a timestamp in whole milliseconds, such as \"2025-01-01 00:00:00+00\", "
        "or 13 digits: milliseconds since 1970.");
  return (epoch_ms >= 0 && epoch_ms < kEpochEnd) || refuse(describe(LayoutError::epoch));
}

bool check_owned_shards(char** value, void**, GucSource) {
  ShardRange ranges[kMaxShardRanges];
  const auto parsed = parse_shard_set(*value, ranges);
  return parsed.error == ShardSetError::none || refuse(describe(parsed.error));
}

// The layout is fixed before this setting is defined.
bool check_sequence_spread(int* value, void**, GucSource) {
  if (static_cast<uint64_t>(*value) <= layout.ids_per_tick()) return true;
  GUC_check_errdetail("The layout has %d sequence numbers per tick.",
                      static_cast<int>(layout.ids_per_tick()));
  return false;
}

void assign_max_lead(int value, void*) {
  lead_ticks = static_cast<uint64_t>(value) / layout.tick_ms;
}

void assign_reserve(int value, void*) {
  const uint64_t ticks = (static_cast<uint64_t>(value) + layout.tick_ms - 1) / layout.tick_ms;
  reserve_ticks = std::max<uint64_t>(ticks, 2);
}

// Runs `define`, then applies what the configuration says of the setting once more, at ERROR: a
// setting that PostgreSQL came to know just now falls back to its default with a mere WARNING, and
// a layout or an ownership that falls back is a duplicate in the making.
template <class Define>
void define_strictly(const char* name, Define define) {
  const char* configured = GetConfigOption(name, true, false);
  char* copy = configured == nullptr ? nullptr : pstrdup(configured);
  define();
  if (copy == nullptr) return;
  set_config_option(name, copy, PGC_POSTMASTER, PGC_S_FILE, GUC_ACTION_SET, false, ERROR, false);
  pfree(copy);
}

void define_int(const char* name, const char* summary, const char* more, int* variable, int low,
                int high, GucContext context, int flags, GucIntCheckHook check = nullptr,
                GucIntAssignHook assign = nullptr) {
  const int boot = *variable;
  define_strictly(name, [=] {
    DefineCustomIntVariable(name, summary, more, variable, boot, low, high, context, flags, check,
                            assign, nullptr);
  });
}

void define_string(const char* name, const char* summary, const char* more, char** variable,
                   const char* boot, GucStringCheckHook check) {
  define_strictly(name, [=] {
    DefineCustomStringVariable(name, summary, more, variable, boot, PGC_POSTMASTER, 0, check,
                               nullptr, nullptr);
  });
}

void fix_layout() {
  int64_t epoch_ms = 0;
  if (!parse_epoch(epoch_text, &epoch_ms)) elog(ERROR, "epoch \"%s\" was accepted", epoch_text);
  const auto parsed = parse_layout(layout_text, static_cast<uint32_t>(tick_setting), epoch_ms);
  if (parsed.error != LayoutError::none)
    error_invalid_layout(layout_text, tick_setting, epoch_text, describe(parsed.error));
  layout = parsed.layout;
  if (wall_clock_ms() < layout.epoch_ms) warn_epoch_in_future(epoch_text);
}

void fix_owned_shards() {
  const auto storage = static_cast<ShardRange*>(
      MemoryContextAlloc(TopMemoryContext, sizeof(ShardRange) * kMaxShardRanges));
  const auto parsed = parse_shard_set(owned_text, storage);
  owned_shards = {storage, parsed.count};
  owned_shards_text = owned_text;
  if (strcmp(owned_text, "all") != 0 && owned_shards.largest() >= layout.shards())
    error_owned_shards_outside_layout(owned_text);
}

}  // namespace

void define_settings() {
  define_string(
      "snowflake.layout", "Sets the bits of an id: a preset or time/shard/sequence.",
      "Presets are instagram (41/13/10), twitter (41/5+5/12) and js53 (38/7/8, tick 10 ms).",
      &layout_text, "instagram", check_layout);
  define_int("snowflake.tick", "Sets the unit of time in an id.",
             "0 stands for the preset's own tick, or 1 ms.", &tick_setting, 0, 1000, PGC_POSTMASTER,
             GUC_UNIT_MS, check_tick);
  define_string(
      "snowflake.epoch", "Sets the time that ids count from.",
      "A timestamp, in UTC where it names no zone, or milliseconds since 1970 in 13 digits.",
      &epoch_text, "2025-01-01 00:00:00+00", check_epoch);
  fix_layout();

  define_string("snowflake.owned_shards", "Sets which shards this server may mint.",
                "\"all\", or shards and ranges such as \"0-1023,2048\".", &owned_text, "all",
                check_owned_shards);
  fix_owned_shards();

  define_int("snowflake.max_databases", "Sets how many databases of this server may mint.", nullptr,
             &max_databases, 1, 65536, PGC_POSTMASTER, 0);
  define_int("snowflake.max_lead", "Sets how far ids may be ahead of the clock.",
             "0 is the strict form: an id is never ahead of the clock.", &max_lead_ms, 0, 60000,
             PGC_SIGHUP, GUC_UNIT_MS, nullptr, assign_max_lead);
  define_int("snowflake.reserve", "Sets how far ahead the durable high-water mark is written.",
             "At least two ticks; also the longest pause after a restart.", &reserve_ms, 2, 3600000,
             PGC_SIGHUP, GUC_UNIT_MS, nullptr, assign_reserve);
  define_int("snowflake.max_forward_jump",
             "Sets how far the clock may be stepped forward before minting stops.",
             "Confirm a step that is right with snowflake.accept_clock().", &max_forward_jump_s, 1,
             INT_MAX, PGC_SIGHUP, GUC_UNIT_S);
  define_int("snowflake.sequence_spread",
             "Sets over how many numbers a new tick's sequence starts.",
             "0 starts every tick at 0.", &sequence_spread, 0, 1 << kMaxSequenceBits, PGC_SIGHUP, 0,
             check_sequence_spread);
  define_int("snowflake.default_shard", "Sets the shard of next_id() without an argument.",
             "-1 is unset.", &default_shard, -1, static_cast<int>(kMaxShard), PGC_USERSET, 0);
  define_int("snowflake.max_wait", "Sets how long a call may wait for the clock.", "0 never waits.",
             &max_wait_ms, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS);

  // As PostgreSQL does with its own settings, and unlike MarkGUCPrefixReserved(), which would drop
  // a misspelt owned_shards with a warning and leave the server owning every shard.
  for_each_undefined_setting([](const char* name) {
    if (strncmp(name, "snowflake.", 10) == 0) error_unknown_setting(name);
  });
  MarkGUCPrefixReserved("snowflake");
}

}  // namespace snowflake::pg
