#include "pg/server/origin_settings.hpp"

#include <cctype>
#include <cstdlib>

#include "core/layout.hpp"
#include "core/lease.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

constinit int32_t configured_region = 0;

namespace {

constexpr int64_t kMaxRegion = (int64_t{1} << kMaxOriginBits) - 1;

constinit int32_t session_region = 0;
constinit ShardRange session_ranges[kMaxShardRanges]{};
constinit ShardSet session_shards{};
constinit bool region_is_valid = true;
constinit bool shards_are_valid = true;
constinit bool all_are_defined = false;

// Returns whether this session is loading the library and has not defined all settings.
bool is_loaded_late() {
  return IsUnderPostmaster && !all_are_defined;
}

// PostgreSQL passes the source PGC_S_TEST to a check hook for both ALTER DATABASE and ALTER ROLE.
// An invalid value of ALTER ROLE is refused only at the next login, not when ALTER ROLE runs.
bool is_of_server_or_database(GucSource source) {
  return source <= PGC_S_DATABASE || source == PGC_S_OVERRIDE || source == PGC_S_TEST;
}

bool refuse_source() {
  GUC_check_errcode(ERRCODE_CANT_CHANGE_RUNTIME_PARAM);
  GUC_check_errdetail("This setting must have the same value in all sessions of a database.");
  GUC_check_errhint("Use ALTER DATABASE ... SET, or ALTER SYSTEM and pg_reload_conf().");
  return false;
}

// Returns whether a check hook must accept even an invalid value from `source`. If the check hook
// refused an invalid value of ALTER DATABASE, PostgreSQL would use another value at login.
bool must_accept(GucSource source) {
  return source == PGC_S_GLOBAL || source == PGC_S_DATABASE;
}

// The check hook passes the source of the value to the assign hook through `extra`.
bool accept(void** extra, GucSource source) {
  auto* const passed = static_cast<GucSource*>(guc_extra(sizeof(GucSource)));
  if (passed == nullptr) return false;
  *passed = source;
  *extra = passed;
  return true;
}

// Returns whether a new value of a setting changes the session's region or shards. A reload of the
// configuration does not change the region and shards of running sessions.
bool counts_for_session(const void* extra) {
  const GucSource source = *static_cast<const GucSource*>(extra);
  return !IsUnderPostmaster || is_loaded_late() || source == PGC_S_GLOBAL ||
         source == PGC_S_DATABASE;
}

struct ParsedRegion {
  int32_t region;
  const char* error;
};

ParsedRegion parse_region(const char* text) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 10);
  const bool is_number = end != text && errno == 0;
  while (isspace(static_cast<unsigned char>(*end))) ++end;
  if (!is_number || *end != '\0' || number < kNoRegion || number > kMaxRegion)
    return {0, "A region is a number from 0 to 16777215, or -1 if it is leased."};
  const auto region = static_cast<int32_t>(number);
  if (!all_are_defined) return {region, nullptr};  // check_lease_settings() compares the settings
  const bool leased = leased_regions.count != 0;
  if (leased && region != kNoRegion)
    return {0, "\"snowflake.leased_regions\" is set, so the region is leased."};
  if (!leased && region == kNoRegion)
    return {0, "-1 means a leased region, but \"snowflake.leased_regions\" is not set."};
  return {region, nullptr};
}
static_assert(kMaxRegion == 16777215);

}  // namespace

OriginSettings origin_settings() {
  return {session_region, session_shards,
          !region_is_valid    ? "snowflake.region"
          : !shards_are_valid ? "snowflake.owned_shards"
                              : nullptr};
}

bool check_region(char** value, void** extra, GucSource source) {
  if (!is_of_server_or_database(source)) return refuse_source();
  const ParsedRegion parsed = parse_region(*value);
  // If the region is leased, "snowflake.region" is not used, so an invalid value is harmless.
  if (parsed.error != nullptr && (!must_accept(source) || leased_regions.count != 0)) {
    GUC_check_errdetail("%s", parsed.error);
    return false;
  }
  return accept(extra, source);
}

void assign_region(const char* value, void* extra) {
  const ParsedRegion parsed = parse_region(value);
  if (parsed.error == nullptr) configured_region = parsed.region;
  if (!counts_for_session(extra)) return;
  region_is_valid = parsed.error == nullptr;
  session_region = parsed.region;
}

bool check_owned_shards(char** value, void** extra, GucSource source) {
  if (!is_of_server_or_database(source)) return refuse_source();
  ShardRange ranges[kMaxShardRanges];
  const auto parsed = parse_shard_set(*value, ranges);
  if (parsed.error != ShardSetError::none && !must_accept(source)) {
    GUC_check_errdetail("%s", describe(parsed.error));
    return false;
  }
  return accept(extra, source);
}

void assign_owned_shards(const char* value, void* extra) {
  if (!counts_for_session(extra)) return;
  const auto parsed = parse_shard_set(value, session_ranges);
  shards_are_valid = parsed.error == ShardSetError::none;
  session_shards = {session_ranges, parsed.count};
}

void finish_origin_settings() {
  all_are_defined = true;
}

}  // namespace snowflake::pg
