#include "pg/errors/errors.hpp"

#include "core/clock.hpp"
#include "core/seal.hpp"
#include "pg/errors/refusal.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

void error_invalid_layout(const char* text, int tick_ms, const char* epoch, const char* detail) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("invalid id layout: \"snowflake.layout\" %s, \"snowflake.tick\" %d ms, "
                         "\"snowflake.epoch\" %s",
                         text, tick_ms, epoch),
                  errdetail("%s", detail),
                  errhint("Correct these settings, which apply to the next CREATE EXTENSION.")));
}

void warn_epoch_in_future(const char* epoch) {
  ereport(WARNING, (errmsg("\"snowflake.epoch\" %s is in the future", epoch),
                    errdetail("The clock shows %s, and no id can be minted before the epoch.",
                              time_text(wall_clock_ms())),
                    errhint("Correct the clock or \"snowflake.epoch\".")));
}

void warn_layout_ended() {
  const char* end = kept_time_text(layout.ms_of_tick(layout.last_minted_tick() + 1));
  ereport(WARNING, (errmsg("the id layout has no time values left"),
                    errdetail("Ids of layout %s can only have times before %s. The clock shows "
                              "%s.",
                              layout_text(layout), end, time_text(wall_clock_ms())),
                    errhint("Correct the clock, \"snowflake.layout\" or \"snowflake.epoch\".")));
}

void error_unknown_setting(const char* name) {
  const bool other = pg_strcasecmp(name, "snowflake.node") == 0;
  ereport(
      ERROR,
      (errcode(ERRCODE_UNDEFINED_OBJECT),
       errmsg("unrecognized configuration parameter \"%s\"", name),
       other ? errdetail("The setting belongs to pgEdge's extension of the same name. The two "
                         "extensions cannot be installed together.")
             : errdetail("Extension snowflake does not have this setting. If a name is misspelt, "
                         "the intended setting keeps its default."),
       errhint("Correct the name of the setting, or remove the setting from postgresql.conf.")));
}

void error_shard_null() {
  ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("shard is null"),
                  errdetail("Layout %s has shards 0 to %u.", layout_bits_text(layout),
                            layout.shards() - 1),
                  errhint("Pass the shard that the row belongs to.")));
}

void error_shard_unset() {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("\"snowflake.default_shard\" is not set"),
                  errdetail("next_id() without an argument mints for \"snowflake.default_shard\"."),
                  errhint("Set \"snowflake.default_shard\", or call next_id(shard).")));
}

void error_shard_range(int shard) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("shard %d is out of range", shard),
       errdetail("Layout %s has shards 0 to %u.", layout_bits_text(layout), layout.shards() - 1),
       errhint("Pass a shard of the layout.")));
}

void error_shard_not_owned(int shard, const ShardSet& shards) {
  refuse(Blocker::shard_not_owned, psprintf("%d", shard),
         psprintf("\"snowflake.owned_shards\" is %s.", shards_text(shards)));
}

void error_region_range(int region) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("region %d is out of range", region),
       errdetail("Layout %s has regions 0 to %u.", layout_bits_text(layout), layout.regions() - 1),
       errhint("Pass a region number of the layout.")));
}

void error_not_a_layout(const char* text, const char* tick, const char* epoch, const char* detail) {
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
           errmsg("invalid id layout: \"%s\" with tick \"%s\" and epoch \"%s\"", text, tick, epoch),
           errdetail("%s", detail),
           errhint("Write the arguments like settings in postgresql.conf, for example "
                   "preview_layout('41/5+8/10', '1ms', '2025-01-01').")));
}

void error_count(int count) {
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("count %d is out of range", count),
           errdetail("A call mints 1 to %d ids.", kMaxBatch),
           count < 1 ? errhint("Pass a count of at least 1.")
                     : errhint("Mint the ids in several calls.")));
}

void error_count_null() {
  ereport(ERROR,
          (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("count is null"),
           errdetail("A call mints 1 to %d ids.", kMaxBatch), errhint("Pass the number of ids.")));
}

void error_sequence_range(int sequence) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("sequence number %d is out of range", sequence),
                  errdetail("Layout %s has sequence numbers 0 to %llu.", layout_bits_text(layout),
                            static_cast<unsigned long long>(layout.sequence_mask())),
                  errhint("Pass a sequence number from 0 to %llu.",
                          static_cast<unsigned long long>(layout.sequence_mask()))));
}

void error_no_last_id() {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("last_id is not yet defined in this session"),
           errdetail("The session has not minted an id."), errhint("Call next_id() first.")));
}

void error_foreign_id(int64_t id) {
  ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                  errmsg("%lld is not an id of this layout", static_cast<long long>(id)),
                  errdetail("Ids of layout %s are numbers from 0 to %lld.",
                            layout_bits_text(layout), static_cast<long long>(layout.last_id())),
                  errhint("Pass an id that was minted with this layout.")));
}

void error_id_null() {
  ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("id is null"),
                  errdetail("next_id_near() mints an id in the shard of the id that is passed."),
                  errhint("Pass the id of a row in the same shard, or call next_id(shard).")));
}

void error_timestamp(int64_t timestamp) {
  const char* first = kept_time_text(layout.epoch_ms);
  const char* end = kept_time_text(layout.ms_of_tick(layout.last_minted_tick() + 1));
  ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                  errmsg("timestamp \"%s\" is out of range for ids", timestamptz_to_str(timestamp)),
                  errdetail("Layout %s covers times from %s up to (not including) %s.",
                            layout_bits_text(layout), first, end),
                  errhint("Pass a timestamp that the layout covers.")));
}

void error_id_ahead(int64_t id, int64_t id_ms, int64_t clock_ms, int64_t lead_ms) {
  constexpr int64_t kDayMs = 86400000;
  const char* subject = psprintf("%lld", static_cast<long long>(id));
  const char* id_time = kept_time_text(id_ms);
  const int64_t ahead_ms = id_ms - clock_ms;
  // An id far ahead of the clock probably has another epoch, because a server's clock is rarely
  // wrong by a day.
  if (ahead_ms > kDayMs)
    refuse(Blocker::id_ahead, subject,
           psprintf("In layout %s, the id has the time %s. The clock shows %s. If the id was "
                    "minted just now, its epoch is %s.",
                    layout_text(layout), id_time, kept_time_text(clock_ms),
                    date_text(layout.epoch_ms - ahead_ms)),
           "If the id was minted with another epoch or layout, create the extension with that "
           "epoch and layout. See \"Moving from something else\" in the documentation.");
  refuse(Blocker::id_ahead, subject,
         psprintf("The id has the time %s. The clock shows %s. \"snowflake.max_lead\" is %d ms.%s",
                  id_time, kept_time_text(clock_ms), max_lead_ms,
                  lead_ms < max_lead_ms ? " The ids of a batch may be ahead of the clock by at "
                                          "most half of \"snowflake.max_lead\"."
                                        : ""),
         psprintf("Correct the clock, or try again in %s.",
                  span_text(std::max<int64_t>(1, ahead_ms - lead_ms))));
}

void notice_nothing_observed() {
  ereport(NOTICE, (errmsg("observe() did nothing because the id is null"),
                   errdetail("The greatest id of an empty table is null.")));
}

}  // namespace snowflake::pg
