#include "pg/errors/errors.hpp"

#include "core/clock.hpp"
#include "core/seal.hpp"
#include "pg/errors/refusal.hpp"
#include "pg/server/rejected_setting.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

void error_setting_rejected(const RejectedSetting& setting) {
  refuse(setting.blocker, setting.name, psprintf("The configured value is \"%s\".", setting.value));
}

void error_no_shared_memory(size_t bytes) {
  refuse(Blocker::no_shared_memory, nullptr,
         psprintf("The library snowflake needs %zu bytes of shared memory. Locks may have filled "
                  "the shared memory.",
                  bytes));
}

void error_other_library(uint32_t memory_abi, uint32_t library_abi) {
  refuse(Blocker::other_library, nullptr,
         psprintf("The shared memory has ABI number %u. The library that this session loaded has "
                  "ABI number %u.",
                  memory_abi, library_abi));
}

void error_no_memory(size_t bytes) {
  ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("could not map shared memory: %m"),
                  errdetail("%zu bytes were requested.", bytes),
                  errhint("Free memory on this machine and start the server again.")));
}

void error_of_state(Blocker blocker) {
  const char* detail =
      "A sequence or table was removed from the extension or renamed. The extension has the "
      "sequences high_water, seal, seal_local, fleet and origin_fingerprint, and the tables "
      "dumped_seal, backfills and late_ids.";
  if (blocker == Blocker::not_installed)
    detail = "The called function exists, but extension snowflake does not.";
  if (blocker == Blocker::other_extension)
    detail =
        "The installed extension has none of the sequences high_water, seal, seal_local, fleet and "
        "origin_fingerprint.";
  refuse(blocker, nullptr, detail);
}

void error_too_many_databases(int most) {
  refuse(Blocker::too_many_databases, nullptr,
         psprintf("Since the server started, %d databases have minted ids. This is the maximum.",
                  most));
}

void error_read_only(const char* function) {
  if (RecoveryInProgress()) refuse(Blocker::standby, function, "This server is a standby.");
  refuse(is_on_for_all("default_transaction_read_only") ? Blocker::read_only_by_default
                                                        : Blocker::read_only_transaction,
         function, "The function may have to write the sequence snowflake.high_water.");
}

void error_parallel(const char* function) {
  refuse(Blocker::parallel_operation, function,
         "The function may have to write the sequence snowflake.high_water.");
}

void error_one_snapshot() {
  ereport(
      ERROR,
      (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
       errmsg("cannot execute settled_before() in a REPEATABLE READ or SERIALIZABLE transaction"),
       errdetail("The transaction is %s, so all its queries use one snapshot. The result of "
                 "settled_before() would be newer than this snapshot.",
                 IsolationIsSerializable() ? "SERIALIZABLE" : "REPEATABLE READ"),
       errhint("Call settled_before() in a READ COMMITTED transaction, before the transaction that "
               "reads the rows.")));
}

void error_of_mark(Blocker blocker) {
  refuse(blocker, nullptr,
         blocker == Blocker::mark_not_permanent
             ? "Sequence snowflake.high_water is not a permanent relation."
             : "After a rollback of this transaction, ids that it minted could be minted again.");
}

void error_mark_unset(int64_t stored) {
  refuse(Blocker::mark_lost, nullptr,
         psprintf("Sequence snowflake.high_water contains %lld ms since 1970, which is before the "
                  "epoch (%lld ms).",
                  static_cast<long long>(stored), static_cast<long long>(layout.epoch_ms)));
}

void error_of_seal(Blocker blocker, const Seals& seals) {
  const char* detail =
      "The number in sequence snowflake.seal or snowflake.seal_local does not "
      "encode an id layout.";
  if (blocker == Blocker::seal_restored) {
    const char* from = layout_text(layout_of(seals.dumped));
    detail = psprintf(
        "CREATE EXTENSION recorded layout %s. The ids in the dump have layout %s. Generated "
        "columns, indexes and partitions may be wrong.",
        layout_text(layout_of(seals.local)), from);
  } else if (blocker == Blocker::seal_not_carried) {
    detail = "Table snowflake.dumped_seal has no row.";
  }
  refuse(blocker, nullptr, detail);
}

void error_setting_invalid(const char* setting) {
  refuse(Blocker::setting_invalid, setting,
         psprintf("The value is \"%s\" in database \"%s\".", GetConfigOption(setting, false, false),
                  database_name()));
}

void error_region_outside_layout(int32_t region) {
  refuse(
      Blocker::region_outside_layout, psprintf("%d", region),
      psprintf("Layout %s has regions 0 to %u.", layout_bits_text(layout), layout.regions() - 1));
}

void error_layout_not_leased(int64_t leased_seal) {
  const char* own = layout_text(layout);
  refuse(Blocker::layout_not_leased, nullptr,
         psprintf("This database has layout %s. At server start, the settings had layout %s.", own,
                  layout_text(layout_of(leased_seal))));
}

void error_not_a_seal(int64_t presented) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
       errmsg("%lld does not encode an id layout", static_cast<long long>(presented)),
       errdetail(
           "Rows of snowflake.dumped_seal contain the id layout of a dumped database as a number."),
       errhint("Copy the row of snowflake.dumped_seal from the dump.")));
}

void error_seal_row_stays() {
  ereport(ERROR,
          (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
           errmsg("the row of snowflake.dumped_seal cannot be changed"),
           errdetail("Dumps contain the row, which records the layout of this database's ids."),
           errhint("Do not change the row.")));
}

void error_not_the_seals_trigger() {
  ereport(ERROR,
          (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
           errmsg("present_seal() can only be called by its trigger"),
           errdetail("The function checks rows that are inserted into snowflake.dumped_seal."),
           errhint("Insert into snowflake.dumped_seal instead.")));
}

void error_may_not_present() {
  ereport(ERROR,
          (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
           errmsg("permission denied to insert another id layout into snowflake.dumped_seal"),
           errdetail("If this row were inserted, no session could mint ids in this database. "
                     "Only roles that may create schemas in the database, own a table, or are "
                     "members of pg_write_all_data may insert the row. If ids were "
                     "restored from the same dump, this database decodes them wrongly."),
           errhint("Delete the restored rows, and restore as the owner of the database.")));
}

void error_seal_not_recorded() {
  ereport(ERROR, (errcode(XactReadOnly ? ERRCODE_READ_ONLY_SQL_TRANSACTION
                                       : ERRCODE_INVALID_TRANSACTION_STATE),
                  errmsg("cannot record another id layout on a standby, in a read-only transaction "
                         "or in a parallel operation"),
                  errdetail("A row of snowflake.dumped_seal has another layout than this "
                            "database. If this layout is recorded, no session can mint ids in "
                            "this database."),
                  errhint("Restore on the primary server, in a read-write transaction.")));
}

void notice_sealed(int32_t own_region, const ShardSet& shards) {
  const char* end = kept_time_text(layout.ms_of_tick(layout.last_minted_tick() + 1));
  const char* region = own_region < 0 ? psprintf("leased, of %u", layout.regions())
                                      : psprintf("%d of %u", own_region, layout.regions());
  ereport(
      NOTICE,
      (errmsg("ids of this database permanently have layout %s", layout_text(layout)),
       errdetail("The ids run out at %s. Region of this server: %s. Owned shards: %s of %u.", end,
                 region, shards_text(shards), layout.shards()),
       errhint("To choose another layout, drop the extension before the first id is minted, set "
               "\"snowflake.layout\" in the session, and create the extension again.")));
}

void notice_seal_adopted(int64_t before) {
  const char* from = layout_text(layout_of(before));
  ereport(
      NOTICE,
      (errmsg("this database adopted the layout of the dump, %s", layout_text(layout)),
       errdetail(
           "CREATE EXTENSION recorded layout %s, but no id of that layout was minted or decoded.",
           from)));
}

void warn_may_meet_others(const char* sign) {
  ereport(WARNING,
          (errmsg("another server may mint the same ids"),
           errdetail("This server seems to be one of several (%s), but has the default settings: "
                     "region 0 and all shards.",
                     sign),
           layout.regions() > 1
               ? errhint("Set \"snowflake.region\" to a different number on each server.")
           : layout.shards() > 1
               ? errhint("Set \"snowflake.owned_shards\" to different shards on each server.")
               : errhint("Before the first id, drop the extension, set \"snowflake.layout\" to a "
                         "layout with regions, and create the extension again.")));
}

void error_clock_behind(uint32_t shard, int64_t next_ms, int64_t clock_ms, int64_t needed_ms) {
  const char* next = kept_time_text(next_ms);
  refuse(
      Blocker::clock_behind, psprintf("%u", shard),
      psprintf(
          "The next id would have the time %s, but the clock shows %s. With \"snowflake.max_lead\" "
          "%d ms, the call would wait %s. \"snowflake.max_wait\" is %d ms.",
          next, time_text(clock_ms), max_lead_ms, span_text(needed_ms), max_wait_ms));
}

void error_waited_too_long(uint32_t shard, int64_t next_ms, int64_t clock_ms, int64_t waited_ms) {
  const char* next = kept_time_text(next_ms);
  refuse(Blocker::waited_too_long, psprintf("%u", shard),
         psprintf("The call waited %s, and \"snowflake.max_wait\" is %d ms. All ids of the shard "
                  "with a time before %s are used, and the clock shows %s. A shard has %llu ids "
                  "per tick of %u ms.",
                  span_text(waited_ms), max_wait_ms, next, time_text(clock_ms),
                  static_cast<unsigned long long>(layout.ids_per_tick()), layout.tick_ms));
}

void error_mark_ahead(int64_t mark_ms, int64_t clock_ms, int64_t needed_ms) {
  const char* mark = kept_time_text(mark_ms);
  refuse(
      Blocker::mark_ahead, nullptr,
      psprintf(
          "Ids may have been minted up to %s, but the clock shows %s. With \"snowflake.max_lead\" "
          "%d ms, the call would wait %s. \"snowflake.max_wait\" is %d ms.",
          mark, kept_time_text(clock_ms), max_lead_ms, span_text(needed_ms), max_wait_ms));
}

void error_clock_jumped(int64_t jump_ms) {
  refuse(Blocker::clock_jumped, span_text(jump_ms),
         psprintf("The jump is %lld ms long, but \"snowflake.max_forward_jump\" is %d s.",
                  static_cast<long long>(jump_ms), max_forward_jump_s));
}

void error_clock_before_epoch(int64_t clock_ms) {
  const char* clock = kept_time_text(clock_ms);
  refuse(Blocker::clock_before_epoch, nullptr,
         psprintf("The clock shows %s. The epoch of the ids is %s.", clock,
                  time_text(layout.epoch_ms)));
}

void error_exhausted() {
  refuse(Blocker::layout_exhausted, nullptr,
         psprintf("Ids of layout %s can only have times before %s.", layout_text(layout),
                  time_text(layout.ms_of_tick(layout.last_minted_tick() + 1))));
}

// Before CREATE EXTENSION the layout of ids is not permanent, so the hint may suggest another
// layout.
void error_exhausted_unsealed() {
  const char* end = kept_time_text(layout.ms_of_tick(layout.last_minted_tick() + 1));
  refuse(Blocker::layout_exhausted, nullptr,
         psprintf("Ids of layout %s can only have times before %s. The clock shows %s.",
                  layout_text(layout), end, kept_time_text(wall_clock_ms())),
         "Correct the clock, or choose a later \"snowflake.epoch\", or a \"snowflake.layout\" "
         "with more time bits.");
}

}  // namespace snowflake::pg
