// Errors about the state of the server, the database and the clock. Errors of settings and
// arguments are in errors_input.cpp.

#include "pg/errors/errors.hpp"

#include "core/clock.hpp"
#include "core/seal.hpp"
#include "pg/errors/refusal.hpp"
#include "pg/server/rejected_setting.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

// State of the server or the database

void error_setting_rejected(const RejectedSetting& setting) {
  refuse(setting.blocker, setting.name, psprintf("It is set to \"%s\".", setting.value));
}

void error_other_library(uint32_t memory_abi, uint32_t library_abi) {
  refuse(Blocker::other_library, nullptr,
         psprintf("The ABI number of the shared memory is %u, that of the library %u.", memory_abi,
                  library_abi));
}

void error_no_memory(size_t bytes) {
  ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("could not map shared memory: %m"),
                  errdetail("%zu bytes were requested.", bytes),
                  errhint("Free memory on this machine and start the server again.")));
}

void error_of_state(Blocker blocker) {
  const char* detail =
      "A sequence high_water, seal, seal_local, fleet or origin_fingerprint, or a table "
      "dumped_seal, backfills or late_ids, was taken out or renamed.";
  if (blocker == Blocker::not_installed)
    detail = "The function was called outside of its extension.";
  if (blocker == Blocker::other_extension)
    detail =
        "It has none of the sequences high_water, seal, seal_local, fleet and origin_fingerprint.";
  refuse(blocker, nullptr, detail);
}

void error_too_many_databases(int most) {
  refuse(Blocker::too_many_databases, nullptr,
         psprintf("%d databases of this server have minted since it started, the greatest number.",
                  most));
}

void error_read_only(const char* function) {
  if (RecoveryInProgress()) refuse(Blocker::standby, function, "This server is a standby.");
  refuse(is_on_for_all("default_transaction_read_only") ? Blocker::read_only_by_default
                                                        : Blocker::read_only_transaction,
         function, "It may have to write the durable high-water mark.");
}

void error_parallel(const char* function) {
  refuse(Blocker::parallel_operation, function,
         "It may have to write the durable high-water mark.");
}

void error_one_snapshot() {
  ereport(ERROR,
          (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
           errmsg("cannot execute settled_before() in a transaction that reads in one snapshot"),
           errdetail("The transaction is %s: all its queries read one snapshot, which is older "
                     "than the answer would be.",
                     IsolationIsSerializable() ? "SERIALIZABLE" : "REPEATABLE READ"),
           errhint("Call it in a READ COMMITTED transaction, before the one that reads.")));
}

void error_of_mark(Blocker blocker) {
  refuse(blocker, nullptr,
         blocker == Blocker::mark_not_permanent
             ? "Sequence snowflake.high_water is not a permanent relation."
             : "Ids minted now would lose their protection if it rolled back.");
}

void error_mark_unset(int64_t stored) {
  refuse(Blocker::mark_lost, nullptr,
         psprintf("Sequence snowflake.high_water is %lld, which is before the epoch (%lld).",
                  static_cast<long long>(stored), static_cast<long long>(layout.epoch_ms)));
}

void error_of_seal(Blocker blocker, const Seals& seals) {
  const char* detail = "Sequence snowflake.seal or snowflake.seal_local contains no layout.";
  if (blocker == Blocker::seal_restored) {
    const char* from = layout_text(layout_of(seals.dumped));
    detail = psprintf(
        "CREATE EXTENSION sealed layout %s; the dump's ids have layout %s. Generated columns, "
        "indexes and partitions may be wrong.",
        layout_text(layout_of(seals.local)), from);
  } else if (blocker == Blocker::seal_not_carried) {
    detail = "Table snowflake.dumped_seal has no row.";
  }
  refuse(blocker, nullptr, detail);
}

void error_setting_invalid(const char* setting) {
  refuse(Blocker::setting_invalid, setting,
         psprintf("It is \"%s\" for database \"%s\".", GetConfigOption(setting, false, false),
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
         psprintf("This database has layout %s; the settings had layout %s at server start.", own,
                  layout_text(layout_of(leased_seal))));
}

void error_not_a_seal(int64_t presented) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("%lld is not the seal of a layout", static_cast<long long>(presented)),
                  errdetail("Rows of snowflake.dumped_seal come from dumps of other databases."),
                  errhint("Restore the row as pg_dump wrote it.")));
}

void error_seal_row_stays() {
  ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                  errmsg("the row of snowflake.dumped_seal cannot be changed"),
                  errdetail("Dumps contain it as the layout of this database's ids."),
                  errhint("Leave it as it is.")));
}

void error_not_the_seals_trigger() {
  ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                  errmsg("present_seal() was not called by its trigger"),
                  errdetail("It compares a row that is inserted into snowflake.dumped_seal."),
                  errhint("Insert into snowflake.dumped_seal instead.")));
}

void error_may_not_present() {
  ereport(ERROR,
          (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
           errmsg("permission denied to present the seal of another layout"),
           errdetail("It would stop minting in this database. Only roles that may create schemas "
                     "in it, own a table, or are members of pg_write_all_data may do this. Rows "
                     "that were restored with it are decoded wrongly here."),
           errhint("Delete the restored rows, and restore as the owner of the database.")));
}

void error_seal_not_recorded() {
  ereport(ERROR, (errcode(XactReadOnly ? ERRCODE_READ_ONLY_SQL_TRANSACTION
                                       : ERRCODE_INVALID_TRANSACTION_STATE),
                  errmsg("cannot record the seal of another layout here"),
                  errdetail("It would stop minting in this database, and this is a standby, a "
                            "read-only transaction or a parallel operation."),
                  errhint("Restore on the primary server, in a read-write transaction.")));
}

void notice_sealed(int32_t own_region, const ShardSet& shards) {
  const char* end = kept_time_text(layout.ms_of_tick(layout.last_minted_tick() + 1));
  const char* region = own_region < 0 ? psprintf("a leased region of %u", layout.regions())
                                      : psprintf("region %d of %u", own_region, layout.regions());
  ereport(NOTICE, (errmsg("ids of this database permanently have layout %s", layout_text(layout)),
                   errdetail("They run out at %s. This server mints in %s, shards %s of %u.", end,
                             region, shards_text(shards), layout.shards()),
                   errhint("To choose another layout, drop the extension before the first id, set "
                           "\"snowflake.layout\" in the session and create it again.")));
}

void notice_seal_adopted(int64_t before) {
  const char* from = layout_text(layout_of(before));
  ereport(NOTICE,
          (errmsg("this database adopted the layout of the dump, %s", layout_text(layout)),
           errdetail("CREATE EXTENSION sealed layout %s, of which no id was minted or decoded.",
                     from)));
}

void warn_may_meet_others(const char* sign) {
  ereport(
      WARNING,
      (errmsg("another server may mint the same ids"),
       errdetail("This server looks like one of several (%s), but it mints in region 0 and owns "
                 "all shards, as every server does by default.",
                 sign),
       layout.regions() > 1
           ? errhint("Set \"snowflake.region\" to a different number on each server.")
       : layout.shards() > 1
           ? errhint("Set \"snowflake.owned_shards\" to different shards on each server.")
           : errhint("Before the first id, drop the extension, set \"snowflake.layout\" to one "
                     "with regions, and create it again.")));
}

// The clock

void error_clock_behind(uint32_t shard, int64_t next_ms, int64_t clock_ms, int64_t needed_ms) {
  const char* next = kept_time_text(next_ms);
  refuse(Blocker::clock_behind, psprintf("%u", shard),
         psprintf("The next id is of %s, the clock shows %s: with \"snowflake.max_lead\" %d ms the "
                  "call would wait %s, more than \"snowflake.max_wait\" (%d ms).",
                  next, time_text(clock_ms), max_lead_ms, span_text(needed_ms), max_wait_ms));
}

void error_waited_too_long(uint32_t shard, int64_t next_ms, int64_t clock_ms, int64_t waited_ms) {
  const char* next = kept_time_text(next_ms);
  refuse(Blocker::waited_too_long, psprintf("%u", shard),
         psprintf("Waited %s, and \"snowflake.max_wait\" is %d ms. The shard's ids are taken up to "
                  "%s, the clock shows %s, and a shard has %llu ids per tick of %u ms.",
                  span_text(waited_ms), max_wait_ms, next, time_text(clock_ms),
                  static_cast<unsigned long long>(layout.ids_per_tick()), layout.tick_ms));
}

void error_mark_ahead(int64_t mark_ms, int64_t clock_ms, int64_t needed_ms) {
  const char* mark = kept_time_text(mark_ms);
  refuse(Blocker::mark_ahead, nullptr,
         psprintf("Ids may have been issued up to %s, the clock shows %s: with "
                  "\"snowflake.max_lead\" %d ms the call would wait %s, more than "
                  "\"snowflake.max_wait\" (%d ms).",
                  mark, kept_time_text(clock_ms), max_lead_ms, span_text(needed_ms), max_wait_ms));
}

void error_clock_jumped(int64_t jump_ms) {
  refuse(Blocker::clock_jumped, span_text(jump_ms),
         psprintf("The clock has moved %lld ms further than the time since boot; "
                  "\"snowflake.max_forward_jump\" is %d s.",
                  static_cast<long long>(jump_ms), max_forward_jump_s));
}

void error_clock_before_epoch(int64_t clock_ms) {
  const char* clock = kept_time_text(clock_ms);
  refuse(Blocker::clock_before_epoch, nullptr,
         psprintf("The clock shows %s, \"snowflake.epoch\" is %s.", clock,
                  time_text(layout.epoch_ms)));
}

void error_exhausted() {
  refuse(Blocker::layout_exhausted, nullptr,
         psprintf("Layout %s ended at %s.", layout_text(layout),
                  time_text(layout.ms_of_tick(layout.last_minted_tick() + 1))));
}

// Nothing has been minted with it: it can be chosen otherwise.
void error_exhausted_unsealed() {
  const char* end = kept_time_text(layout.ms_of_tick(layout.last_minted_tick() + 1));
  refuse(
      Blocker::layout_exhausted, nullptr,
      psprintf("Layout %s ended at %s, the clock shows %s.", layout_text(layout), end,
               kept_time_text(wall_clock_ms())),
      "Correct the clock, or set a \"snowflake.layout\" or \"snowflake.epoch\" that ends later.");
}

}  // namespace snowflake::pg
