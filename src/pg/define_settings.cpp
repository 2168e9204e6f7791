#include "pg/define_settings.hpp"

#include <algorithm>
#include <climits>

#include "core/clock.hpp"
#include "core/epoch.hpp"
#include "core/lease.hpp"
#include "core/seal.hpp"
#include "pg/errors/errors.hpp"
#include "pg/errors/errors_lease.hpp"
#include "pg/server/configured_value.hpp"
#include "pg/server/origin_settings.hpp"
#include "pg/server/rejected_setting.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

constinit Layout layout{};
constinit int64_t server_seal = 0;
constinit const char* lease_conninfo = "";
constinit ShardSet leased_regions{};
constinit int lease_ms = 0;
constinit int max_skew_ms = 10000;
constinit int max_lead_ms = 1000;
constinit int reserve_ms = 1000;
constinit int max_forward_jump_s = 60;
constinit double max_clock_error_ms = 100;
constinit double clock_error_ms = -1;
constinit bool use_tsc = true;
constinit int on_clone = static_cast<int>(OnClone::warn);
constinit int on_unsynchronized = static_cast<int>(Unsynchronized::mint);
constinit int default_shard = -1;
constinit int max_wait_ms = 2000;
constinit bool commit_waits = false;
constinit uint64_t lead_ticks = 0;
constinit uint64_t reserve_ticks = 0;
constinit uint64_t sequence_starts = 0;
constinit bool citus_preloaded = false;

namespace {

constinit char* layout_setting = nullptr;
constinit char* epoch_setting = nullptr;
constinit char* region_setting = nullptr;
constinit char* owned_setting = nullptr;
constinit char* conninfo_setting = nullptr;
constinit char* regions_setting = nullptr;
constinit double tick_setting = 0;
constinit int sequence_spread = 0;

constexpr config_enum_entry kOnClone[] = {{"warn", static_cast<int>(OnClone::warn), false},
                                          {"refuse", static_cast<int>(OnClone::refuse), false},
                                          {nullptr, 0, false}};
constexpr config_enum_entry kUnsynchronized[] = {
    {"mint", static_cast<int>(Unsynchronized::mint), false},
    {"wait_at_start", static_cast<int>(Unsynchronized::wait_at_start), false},
    {"refuse", static_cast<int>(Unsynchronized::refuse), false},
    {nullptr, 0, false}};

// clang's -Wformat-security requires a literal as the format of GUC_check_errdetail().
bool refuse(const char* detail) {
  GUC_check_errdetail("%s", detail);
  return false;
}

bool check_layout(char** value, void**, GucSource) {
  const auto parsed = parse_layout(*value, 0, kDefaultEpoch);
  return parsed.error == LayoutError::none || refuse(describe(parsed.error));
}

// An integer setting would round "100us" to 0 ms. As a floating-point setting, "100us" is 0.1 ms,
// and check_tick() rejects fractions of a millisecond.
bool check_tick(double* value, void**, GucSource) {
  if (*value == 0) return true;
  const auto ms = static_cast<uint32_t>(*value);
  return (*value == ms && is_tick(ms)) || refuse(describe(LayoutError::tick));
}

bool check_epoch(char** value, void**, GucSource) {
  const auto parsed = parse_epoch(*value);
  if (!parsed.valid) return refuse(describe(LayoutError::epoch_syntax));
  return (parsed.ms >= 0 && parsed.ms < kEpochEnd) || refuse(describe(LayoutError::epoch));
}

void derive(int max_lead, int reserve, int spread) {
  lead_ticks = static_cast<uint64_t>(max_lead) / layout.tick_ms;
  reserve_ticks =
      std::max<uint64_t>((static_cast<uint64_t>(reserve) + layout.tick_ms - 1) / layout.tick_ms, 2);
  sequence_starts = std::min(static_cast<uint64_t>(spread), layout.ids_per_tick());
}

void assign_max_lead(int value, void*) {
  derive(value, reserve_ms, sequence_spread);
}

void assign_reserve(int value, void*) {
  derive(max_lead_ms, value, sequence_spread);
}

void assign_sequence_spread(int value, void*) {
  derive(max_lead_ms, reserve_ms, value);
}

// If a configured value is invalid when a setting is defined, PostgreSQL only warns and uses the
// default. With the default of "snowflake.layout" or "snowflake.owned_shards" instead of the
// configured value, a server could mint duplicate ids. The function define_strictly() assigns a
// configured value again at level ERROR, so that an invalid value stops the server start.
template <class Define>
void define_strictly(const char* name, Define define) {
  if (!process_shared_preload_libraries_in_progress) {
    const ConfiguredValue configured = configured_value(name);
    define();
    if (is_lost(name, configured)) reject_setting(Blocker::setting_rejected, name, configured.text);
    return;
  }
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
    DefineCustomIntVariable(name, summary, more, variable, boot, low, high, context,
                            flags | kSetInParallel, check, assign, nullptr);
  });
}

void define_string(const char* name, const char* summary, const char* more, char** variable,
                   const char* boot, GucContext context, GucStringCheckHook check,
                   GucStringAssignHook assign = nullptr) {
  define_strictly(name, [=] {
    DefineCustomStringVariable(name, summary, more, variable, boot, context, kSetInParallel, check,
                               assign, nullptr);
  });
}

void define_real(const char* name, const char* summary, const char* more, double* variable,
                 double low, double high, GucContext context) {
  const double boot = *variable;
  define_strictly(name, [=] {
    DefineCustomRealVariable(name, summary, more, variable, boot, low, high, context,
                             GUC_UNIT_MS | kSetInParallel, nullptr, nullptr, nullptr);
  });
}

void define_bool(const char* name, const char* summary, const char* more, bool* variable,
                 GucContext context) {
  define_strictly(name, [=] {
    DefineCustomBoolVariable(name, summary, more, variable, *variable, context, kSetInParallel,
                             nullptr, nullptr, nullptr);
  });
}

void define_enum(const char* name, const char* summary, const char* more, int* variable,
                 const config_enum_entry* options) {
  define_strictly(name, [=] {
    DefineCustomEnumVariable(name, summary, more, variable, *variable, options, PGC_SIGHUP,
                             kSetInParallel, nullptr, nullptr, nullptr);
  });
}

// Sets the id layout that a session uses until it has read the stored layout (seal) of its
// database. If the library is not preloaded, only CREATE EXTENSION checks the layout settings.
void fix_layout() {
  if (!process_shared_preload_libraries_in_progress) {
    layout = parse_layout("fleet", 0, kDefaultEpoch).layout;
    return;
  }
  layout = chosen_layout();
  server_seal = seal_of(layout);
  if (wall_clock_ms() < layout.epoch_ms) warn_epoch_in_future(epoch_setting);
  if (wall_clock_ms() >= layout.ms_of_tick(layout.last_minted_tick() + 1)) warn_layout_ended();
}

constexpr uint32_t kMostLeasedRegions = 64;

bool check_leased_regions(char** value, void**, GucSource) {
  if (**value == '\0') return true;
  ShardRange ranges[kMaxShardRanges];
  const auto parsed = parse_shard_set(*value, ranges);
  if (parsed.error != ShardSetError::none)
    return refuse("Write regions and ranges in ascending order, such as \"4,5\" or \"4-7\".");
  const ShardSet regions{ranges, parsed.count};
  if (regions.largest() >= layout.regions()) {
    GUC_check_errdetail("Layout %s has regions 0 to %u.", layout_bits_text(layout),
                        layout.regions() - 1);
    return false;
  }
  uint32_t count = 0;
  for (size_t i = 0; i < regions.count; ++i) count += ranges[i].last - ranges[i].first + 1;
  return count <= kMostLeasedRegions || refuse("A server can lease at most 64 regions.");
}

void fix_leased_regions() {
  if (*regions_setting == '\0') return;
  const auto storage = static_cast<ShardRange*>(
      MemoryContextAlloc(TopMemoryContext, sizeof(ShardRange) * kMaxShardRanges));
  leased_regions = {storage, parse_shard_set(regions_setting, storage).count};
}

void check_lease_settings() {
  const bool leased = *regions_setting != '\0';
  if (!leased && configured_region < 0)
    error_lease_settings(
        "\"snowflake.region\" is -1, and \"snowflake.leased_regions\" is not set.",
        "Set \"snowflake.leased_regions\" to regions that no other server has, for example '4,5'.");
  if (!leased) return;
  if (lease_conninfo[0] == '\0')
    error_lease_settings(
        "\"snowflake.leased_regions\" is set, and \"snowflake.lease_conninfo\" is not.",
        "Set \"snowflake.lease_conninfo\" to the connection string of the lease server.");
  if (configured_region > 0)
    error_lease_settings("\"snowflake.leased_regions\" and \"snowflake.region\" are both set.",
                         "Remove \"snowflake.region\".");
  // If the region is leased, SHOW snowflake.region must not show a static region.
  SetConfigOption("snowflake.region", "-1", PGC_POSTMASTER, PGC_S_OVERRIDE);
  if (lease_ms == 0 && layout.region_bits == 0)
    error_lease_settings(
        "The layout has only one region, so minting pauses for the length of the lease after a "
        "power loss.",
        "Set \"snowflake.lease\", for example to 10s.");
  if (lease_ms == 0) lease_ms = static_cast<int>(kDefaultLeaseMs);
  if (lease_ms < 1000)
    error_lease_settings("\"snowflake.lease\" is less than a second.",
                         "Set \"snowflake.lease\" to at least 1s, for example to 1h.");
  if (max_skew_ms >= lease_ms / 3)
    error_lease_settings("\"snowflake.max_skew\" must be less than a third of \"snowflake.lease\".",
                         "Lower \"snowflake.max_skew\".");
}

void define_lease_settings() {
  define_strictly("snowflake.lease_conninfo", [] {
    DefineCustomStringVariable(
        "snowflake.lease_conninfo", "Sets the connection string of the lease server.",
        "The string must not contain a password. This server leases its region from the lease "
        "server, or reports its static region there.",
        &conninfo_setting, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY, nullptr, nullptr, nullptr);
  });
  define_string("snowflake.leased_regions", "Sets the regions that this server may lease.",
                "The value is a list of regions and ranges of regions, such as \"4,5\" or "
                "\"4-7\". A server leases one region of its list at a time. Each server needs "
                "different regions. An empty value means that no region is leased.",
                &regions_setting, "", PGC_POSTMASTER, check_leased_regions);
  fix_leased_regions();
  define_int("snowflake.lease", "Sets the length of the lease of a region.",
             "0 means one hour. If the id layout has no region bits, 0 is invalid.", &lease_ms, 0,
             static_cast<int>(kLongestLeaseMs), PGC_POSTMASTER, GUC_UNIT_MS);
  define_int("snowflake.max_skew",
             "Sets the allowed difference between the clocks of this server and the lease server.",
             "The value must be less than a third of \"snowflake.lease\".", &max_skew_ms, 1,
             1200000, PGC_POSTMASTER, GUC_UNIT_MS);
  lease_conninfo = conninfo_setting;
  check_lease_settings();
}

// The whole name of the library must match, because for example citus_columnar does not distribute
// tables as citus does.
bool preloads(const char* library) {
  List* names = NIL;
  bool found = false;
  ListCell* cell;
  if (!SplitDirectoriesString(pstrdup(shared_preload_libraries_string), ',', &names)) return false;
  foreach (cell, names) {
    const char* const path = static_cast<const char*>(lfirst(cell));
    const char* const slash = strrchr(path, '/');
    const char* const name = slash == nullptr ? path : slash + 1;
    const size_t length = strlen(library);
    found |= strncmp(name, library, length) == 0 &&
             (name[length] == '\0' || strcmp(name + length, DLSUFFIX) == 0);
  }
  return found;
}

}  // namespace

Layout chosen_layout() {
  const int64_t epoch_ms = parse_epoch(epoch_setting).ms;
  const auto parsed = parse_layout(layout_setting, static_cast<uint32_t>(tick_setting), epoch_ms);
  if (parsed.error != LayoutError::none)
    error_invalid_layout(layout_setting, static_cast<int>(tick_setting), epoch_setting,
                         describe(parsed.error));
  return parsed.layout;
}

void use_layout(const Layout& sealed) {
  layout = sealed;
  derive(max_lead_ms, reserve_ms, sequence_spread);
}

void define_settings() {
  citus_preloaded = preloads("citus");
  define_string(
      "snowflake.layout",
      "Sets the id layout for the next CREATE EXTENSION: a preset, or numbers of bits.",
      "The bits are time/region+shard/sequence. Presets are fleet (41/5+8/10), wide (41/5+13/5), "
      "instagram (41/13/10), twitter (41/5+5/12) and js53 (38/7/8, tick 10 ms).",
      &layout_setting, "fleet", PGC_SUSET, check_layout);
  define_strictly("snowflake.tick", [] {
    DefineCustomRealVariable("snowflake.tick",
                             "Sets the unit of time in ids for the next CREATE EXTENSION.",
                             "The value is 1, 10, 100 or 1000 ms. The value 0 means the tick of "
                             "the preset, or 1 ms without a preset.",
                             &tick_setting, 0, 0, 1000, PGC_SUSET, GUC_UNIT_MS | kSetInParallel,
                             check_tick, nullptr, nullptr);
  });
  define_string("snowflake.epoch",
                "Sets the time (epoch) from which ids count, for the next CREATE EXTENSION.",
                "The value is an ISO date, in UTC if the date has no offset, or milliseconds since "
                "1970 in 13 digits.",
                &epoch_setting, "2025-01-01 00:00:00+00", PGC_SUSET, check_epoch);
  fix_layout();

  define_string(
      "snowflake.region", "Sets the region that this server or database mints in.",
      "Servers or databases that may mint the same shards need different regions. -1 means a "
      "leased region, see \"snowflake.leased_regions\". A change applies to new sessions.",
      &region_setting, "0", PGC_SUSET, check_region, assign_region);
  define_string("snowflake.owned_shards", "Sets which shards this server or database may mint.",
                "The value is \"all\", or a list of shards and ranges of shards, such as "
                "\"0-127,200\". A change applies to new sessions.",
                &owned_setting, "all", PGC_SUSET, check_owned_shards, assign_owned_shards);
  if (process_shared_preload_libraries_in_progress)
    define_lease_settings();
  else if (origin_settings().region == kNoRegion)
    reject_setting(Blocker::not_preloaded, "snowflake.region", "-1");
  finish_origin_settings();

  define_int("snowflake.max_lead", "Sets how far ids may be ahead of the clock.",
             "0 means that ids are never ahead of the clock.", &max_lead_ms, 0, 86400000,
             PGC_SIGHUP, GUC_UNIT_MS, nullptr, assign_max_lead);
  define_int("snowflake.reserve",
             "Sets how far ahead of the clock the durable high-water mark is written.",
             "The value must be at least two ticks. After a restart, minting pauses for at most "
             "this time.",
             &reserve_ms, 2, 3600000, PGC_SIGHUP, GUC_UNIT_MS, nullptr, assign_reserve);
  define_int("snowflake.max_forward_jump",
             "Sets how far the clock may be stepped forward before minting stops.",
             "If minting has stopped but the clock is right, call snowflake.accept_clock().",
             &max_forward_jump_s, 1, INT_MAX, PGC_SIGHUP, GUC_UNIT_S);
  define_enum(
      "snowflake.on_clone",
      "Sets whether a cloned database mints ids before accept_clone() is called.",
      "A database counts as a clone if it was copied or moved after it minted its last ids.",
      &on_clone, kOnClone);
  define_enum("snowflake.unsynchronized",
              "Sets whether ids are minted while the clock is not synchronized.",
              "With wait_at_start, the clock must be synchronized once after each start of the "
              "server.",
              &on_unsynchronized, kUnsynchronized);
  define_int(
      "snowflake.sequence_spread",
      "Sets an upper limit for the first sequence number of a time unit (tick).",
      "The first number is (last number of the tick before + 1) modulo this limit; with 0 it is 0.",
      &sequence_spread, 0, 1 << kMaxSequenceBits, PGC_SIGHUP, 0, nullptr, assign_sequence_spread);
  define_int("snowflake.default_shard", "Sets the shard of next_id() calls without a shard.",
             "-1 means no default shard.", &default_shard, -1, static_cast<int>(kMaxShard),
             PGC_USERSET, 0);
  define_int("snowflake.max_wait", "Sets how long a call may wait for the clock.",
             "0 means that calls never wait.", &max_wait_ms, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS);

  define_bool("snowflake.commit_wait",
              "Delays the commit of a transaction that minted ids, so that ids minted after the "
              "commit are greater on all servers.",
              "The delay covers the error of this server's clock, and the error of other servers' "
              "clocks, which is set in \"snowflake.max_clock_error\".",
              &commit_waits, PGC_USERSET);
  define_bool("snowflake.use_tsc",
              "Sets whether the time-stamp counter is used to read the clock less often.",
              "A clock reading is used for at most 50 us, within the same millisecond, if the "
              "kernel's clock uses the time-stamp counter.",
              &use_tsc, PGC_SIGHUP);
  define_real("snowflake.clock_error", "Sets the maximum error of this server's clock.",
              "-1 means the maximum error that the kernel reports for the clock. Set a value if "
              "PTP or the hypervisor, not the kernel, disciplines the clock.",
              &clock_error_ms, -1, 60000, PGC_SUSET);
  define_real(
      "snowflake.max_clock_error",
      "Sets the maximum error up to which a clock counts as synchronized.",
      "Use the same value on all servers, because \"snowflake.commit_wait\" waits for this time.",
      &max_clock_error_ms, 0, 60000, PGC_SIGHUP);

  // MarkGUCPrefixReserved() only warns about an unknown setting that begins with "snowflake.". A
  // server with a misspelt owned_shards would own every shard, so an unknown setting is an error.
  reject_unknown_settings();
  if (process_shared_preload_libraries_in_progress && rejected_setting.blocker != Blocker::none)
    error_unknown_setting(rejected_setting.name);
  MarkGUCPrefixReserved("snowflake");
}

}  // namespace snowflake::pg
