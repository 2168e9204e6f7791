#include "pg/errors.hpp"

#include "core/seal.hpp"
#include "pg/settings.hpp"
#include "pg/text.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

namespace {

// A span as people read it: 350 ms, 12.5 s, 3.0 h.
const char* span_text(int64_t ms) {
  if (ms < 10000) return psprintf("%lld ms", static_cast<long long>(ms));
  const double s = static_cast<double>(ms) / 1000;
  if (s < 600) return psprintf("%.1f s", s);
  if (s < 36000) return psprintf("%.1f min", s / 60);
  if (s < 864000) return psprintf("%.1f h", s / 3600);
  return psprintf("%.1f days", s / 86400);
}

// The text of time_text() lives in a static buffer.
const char* kept_time_text(int64_t ms) {
  return pstrdup(time_text(ms));
}

}  // namespace

// Configuration, at server start

void error_invalid_layout(const char* text, int tick_ms, const char* epoch, const char* detail) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
       errmsg("snowflake.layout \"%s\" with snowflake.tick %d ms and snowflake.epoch \"%s\" is "
              "not a layout",
              text, tick_ms, epoch),
       errdetail("%s", detail),
       errhint("Correct the settings in postgresql.conf; databases that hold ids need the layout "
               "they were created with.")));
}

void error_owned_shards_outside_layout(const char* owned) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
       errmsg("snowflake.owned_shards \"%s\" names shards that the layout does not have", owned),
       errdetail("Layout %s has shards 0 to %u.", layout_bits_text(layout), layout.shards() - 1),
       errhint("Correct snowflake.owned_shards in postgresql.conf.")));
}

void warn_epoch_in_future(const char* epoch) {
  ereport(WARNING, (errmsg("snowflake.epoch \"%s\" is in the future", epoch),
                    errdetail("No id can be minted before the epoch."),
                    errhint("Correct the clock or snowflake.epoch.")));
}

void error_unknown_setting(const char* name) {
  const bool other = strcmp(name, "snowflake.node") == 0;
  ereport(ERROR,
          (errcode(ERRCODE_UNDEFINED_OBJECT),
           errmsg("unrecognized configuration parameter \"%s\"", name),
           other ? errdetail("The setting belongs to pgEdge's extension of the same name; the two "
                             "cannot be installed together.")
                 : errdetail("The extension has no such setting."),
           errhint("Remove it from postgresql.conf or correct its name.")));
}

// State of the server or the database

void error_not_preloaded() {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("snowflake must be loaded when the server starts"),
           errdetail("Its shards live in shared memory, which is allocated at server start."),
           errhint("Add snowflake to shared_preload_libraries and restart the server.")));
}

void error_not_installed() {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("extension \"snowflake\" is not installed in this database"),
                  errdetail("The function was called outside of its extension."),
                  errhint("Run CREATE EXTENSION snowflake.")));
}

void error_other_extension() {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("extension \"snowflake\" in this database is another product"),
           errdetail("It has no sequences high_water, seal and seal_here in schema snowflake."),
           errhint("Drop it, then run CREATE EXTENSION snowflake.")));
}

void error_too_many_databases() {
  ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                  errmsg("too many databases use snowflake"),
                  errdetail("snowflake.max_databases is %d, and as many databases hold a place.",
                            max_databases),
                  errhint("Raise snowflake.max_databases and restart the server.")));
}

void error_read_only(const char* function) {
  if (RecoveryInProgress())
    ereport(ERROR,
            (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
             errmsg("cannot execute %s during recovery", function),
             errdetail("This server is a standby."), errhint("Connect to the primary server.")));
  ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                  errmsg("cannot execute %s in a read-only transaction", function),
                  errdetail("It may have to write the durable high-water mark."),
                  errhint("Use a read-write transaction.")));
}

void error_parallel(const char* function) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_STATE),
                  errmsg("cannot execute %s during a parallel operation", function),
                  errdetail("It may have to write the durable high-water mark."),
                  errhint("Label functions that mint PARALLEL UNSAFE.")));
}

void error_not_permanent() {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the high-water mark would not survive a crash"),
                  errdetail("Sequence snowflake.high_water is not a permanent relation."),
                  errhint("Run ALTER SEQUENCE snowflake.high_water SET LOGGED.")));
}

void error_mark_uncommitted() {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the high-water mark has been altered in this transaction"),
                  errdetail("Ids minted now would lose their protection if it rolled back."),
                  errhint("Commit the transaction first.")));
}

void error_extension_recreated() {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("extension \"snowflake\" has been dropped and created again in this transaction"),
           errdetail("Ids minted now would lose their protection if it rolled back."),
           errhint("Commit the transaction first.")));
}

void error_mark_unset(int64_t stored) {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the high-water mark of this database is lost"),
           errdetail("Sequence snowflake.high_water says %lld, which lies before the epoch (%lld).",
                     static_cast<long long>(stored), static_cast<long long>(layout.epoch_ms)),
           errhint("Set it, with setval(), to a time in milliseconds since 1970 that is later than "
                   "every id of this database.")));
}

void error_seal_unset() {
  ereport(
      ERROR,
      (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
       errmsg("the layout of this database is not sealed"),
       errdetail("Sequence snowflake.seal or snowflake.seal_here holds no layout."),
       errhint("Restore the database again; if it holds no ids, drop and create the extension.")));
}

void error_seal_restored(int64_t here, int64_t dumped) {
  const char* from = layout_text(layout_of(dumped));
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("this database was restored under another layout than its ids have"),
           errdetail("The server had layout %s; the dump's ids have layout %s. Generated columns, "
                     "indexes and partitions may be wrong.",
                     layout_text(layout_of(here)), from),
           errhint("Set the dump's layout, tick and epoch in postgresql.conf, restart, and restore "
                   "into a new database.")));
}

void error_seal_contradicted(int64_t sealed) {
  const char* ids = layout_text(layout_of(sealed));
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the settings contradict the layout that this database is sealed with"),
                  errdetail("The server has layout %s; this database has layout %s.",
                            layout_text(layout), ids),
                  errhint("Set snowflake.layout, snowflake.tick and snowflake.epoch to the "
                          "database's layout and restart the server.")));
}

// Arguments

void error_shard_null() {
  ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("shard is null"),
                  errdetail("Layout %s has shards 0 to %u.", layout_bits_text(layout),
                            layout.shards() - 1),
                  errhint("Pass the shard that the row belongs to.")));
}

void error_shard_unset() {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("snowflake.default_shard is not set"),
                  errdetail("next_id() without an argument mints for snowflake.default_shard."),
                  errhint("Set snowflake.default_shard, or call next_id(shard).")));
}

void error_shard_range(int shard) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("shard %d is out of range", shard),
       errdetail("Layout %s has shards 0 to %u.", layout_bits_text(layout), layout.shards() - 1),
       errhint("Pass a shard of the layout.")));
}

void error_shard_not_owned(int shard) {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("shard %d is not owned by this server", shard),
                  errdetail("snowflake.owned_shards is \"%s\".", owned_shards_text),
                  errhint("Insert on the server that owns the shard.")));
}

void error_count(int count) {
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("count %d is out of range", count),
           errdetail("A call mints 1 to 1000000 ids."), errhint("Ask for a count in that range.")));
}

void error_count_null() {
  ereport(ERROR,
          (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("count is null"),
           errdetail("A call mints 1 to 1000000 ids."), errhint("Ask for a count in that range.")));
}

void error_sequence_range(int sequence) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("sequence %d is out of range", sequence),
                  errdetail("Layout %s has sequence numbers 0 to %llu.", layout_bits_text(layout),
                            static_cast<unsigned long long>(layout.sequence_mask())),
                  errhint("Pass a sequence number of the layout.")));
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
                  errdetail("Ids of layout %s have %u bits: 0 to %lld.", layout_bits_text(layout),
                            layout.id_bits(),
                            static_cast<long long>((uint64_t{1} << layout.id_bits()) - 1)),
                  errhint("Pass an id that was minted with this layout.")));
}

void error_id_null() {
  ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("id is null"),
                  errdetail("There is nothing to observe."),
                  errhint("Pass the greatest id that was minted elsewhere.")));
}

void error_timestamp(int64_t timestamp) {
  const char* first = kept_time_text(layout.epoch_ms);
  const char* end = kept_time_text(layout.ms_of_tick(layout.last_minted_tick() + 1));
  ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                  errmsg("timestamp \"%s\" is out of range for ids", timestamptz_to_str(timestamp)),
                  errdetail("Layout %s covers %s up to, not including, %s.",
                            layout_bits_text(layout), first, end),
                  errhint("Pass a timestamp in that range.")));
}

void error_observe_ahead(int64_t id, int64_t id_ms, int64_t clock_ms) {
  const char* id_time = kept_time_text(id_ms);
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("id %lld is too far ahead of the clock", static_cast<long long>(id)),
                  errdetail("The id is of %s, the clock says %s, and snowflake.max_lead is %d ms.",
                            id_time, time_text(clock_ms), max_lead_ms),
                  errhint("Correct the clock, or observe the id again in %s.",
                          span_text(id_ms - clock_ms - max_lead_ms))));
}

void error_observe_exhausted(int64_t id) {
  ereport(ERROR,
          (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
           errmsg("id %lld lies beyond the range that is minted", static_cast<long long>(id)),
           errdetail("Layout %s is minted up to %s.", layout_bits_text(layout),
                     time_text(layout.ms_of_tick(layout.last_minted_tick() + 1))),
           errhint("Pass an id that was minted with this layout.")));
}

// The clock

void error_clock_behind(uint32_t shard, int64_t next_ms, int64_t clock_ms, int64_t needed_ms) {
  const char* next = kept_time_text(next_ms);
  ereport(
      ERROR,
      (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
       errmsg("the clock is behind the ids of shard %u", shard),
       errdetail("The next id is of %s, the clock says %s: with snowflake.max_lead %d ms the call "
                 "would wait %s, more than snowflake.max_wait (%d ms).",
                 next, time_text(clock_ms), max_lead_ms, span_text(needed_ms), max_wait_ms),
       errhint("Check the time synchronization; minting resumes by itself when the clock has "
               "caught up.")));
}

void error_waited_too_long(uint32_t shard, int64_t next_ms, int64_t clock_ms, int64_t waited_ms) {
  const char* next = kept_time_text(next_ms);
  ereport(
      ERROR,
      (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
       errmsg("no id of shard %u could be had in time", shard),
       errdetail(
           "Waited %s, and snowflake.max_wait is %d ms. The shard's ids are taken up to %s, the "
           "clock says %s, and a shard has %llu ids per tick of %u ms.",
           span_text(waited_ms), max_wait_ms, next, time_text(clock_ms),
           static_cast<unsigned long long>(layout.ids_per_tick()), layout.tick_ms),
       errhint("Spread the load over more shards, or raise snowflake.max_wait.")));
}

void error_clock_jumped(int64_t jump_ms) {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the clock jumped ahead by %s", span_text(jump_ms)),
           errdetail("The clock has moved %lld ms further than the time since boot; "
                     "snowflake.max_forward_jump is %d s.",
                     static_cast<long long>(jump_ms), max_forward_jump_s),
           errhint("Correct the clock, or confirm it with SELECT snowflake.accept_clock().")));
}

void error_clock_before_epoch(int64_t clock_ms) {
  const char* clock = kept_time_text(clock_ms);
  ereport(
      ERROR,
      (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the clock is before the epoch"),
       errdetail("The clock says %s, snowflake.epoch is %s.", clock, time_text(layout.epoch_ms)),
       errhint("Correct the clock.")));
}

void error_exhausted() {
  ereport(ERROR,
          (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED), errmsg("the layout is exhausted"),
           errdetail("Layout %s ended at %s.", layout_text(layout),
                     time_text(layout.ms_of_tick(layout.last_minted_tick() + 1))),
           errhint("Move the database to a layout with more time bits or a later epoch.")));
}

}  // namespace snowflake::pg
