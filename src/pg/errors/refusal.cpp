#include "pg/errors/refusal.hpp"

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr int kState = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;

// Counted are the calls that were refused an id, or whose id was refused. Blockers that fail no
// call, and refusals without shared memory, are not counted. The same blocker can be met by who
// asks for no id: now_bounds() raises clock_unsynchronized without counting it.
constexpr RefusalText kTable[kBlockers] = {
    {Blocker::none, Cause::none, 0, nullptr, nullptr, nullptr},
    {Blocker::not_preloaded, Cause::none, kState,
     "\"%s\" needs the library to be loaded when the server starts",
     "a setting needs the library to be preloaded",
     "Add snowflake to \"shared_preload_libraries\" and restart the server."},
    {Blocker::setting_rejected, Cause::none, kState, "the configured value of \"%s\" was rejected",
     "a setting was rejected",
     "Correct the setting where it is set: the configuration, the database, the role, or the "
     "client's connection options; then connect again."},
    {Blocker::other_library, Cause::none, kState,
     "this server runs with another version of the snowflake library",
     "another library made the shared memory",
     "Restart the server, or install the former package again."},
    {Blocker::standby, Cause::read_only, ERRCODE_READ_ONLY_SQL_TRANSACTION,
     "cannot execute %s during recovery", "standby", "Connect to the primary server."},
    {Blocker::setting_invalid, Cause::not_owned, kState, "the value of \"%s\" is invalid",
     "invalid region or shards",
     "Set \"snowflake.region\" and \"snowflake.owned_shards\" with ALTER DATABASE, and connect "
     "again."},
    {Blocker::node_without_origin, Cause::not_owned, kState,
     "this node of Citus would mint the same ids as others",
     "Citus node without a region or shards of its own",
     "Set \"snowflake.region\" or \"snowflake.owned_shards\" to a different value on each node, "
     "reload, and connect again."},
    {Blocker::read_only_by_default, Cause::read_only, ERRCODE_READ_ONLY_SQL_TRANSACTION,
     "cannot execute %s in a read-only transaction", "read-only by default",
     "Set \"default_transaction_read_only\" to off when this server may write again."},
    {Blocker::flush_stalled, Cause::none, 0, nullptr, "waiting for the disk of the WAL",
     "Check the disk of the WAL; calls continue when it answers."},
    {Blocker::clock_before_epoch, Cause::clock_before_epoch, kState,
     "the clock is before the epoch", "clock before the epoch",
     "Correct the clock; if the epoch is wrong, correct it before the first id."},
    {Blocker::layout_exhausted, Cause::exhausted, ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
     "the layout is exhausted", "layout exhausted",
     "Move the database to a layout with more time bits or a later epoch."},
    {Blocker::clock_jumped, Cause::clock_jumped, kState, "the clock jumped ahead by %s",
     "clock jumped ahead",
     "Correct the clock, or confirm it with SELECT snowflake.accept_clock()."},
    {Blocker::unsynchronized, Cause::unsynchronized, kState,
     "the clock is not synchronized, and minting waits for synchronization",
     "clock not synchronized",
     "Check the time synchronization, or set \"snowflake.clock_error\" to the greatest error that "
     "the clock may have."},
    {Blocker::lease_worker_gone, Cause::lease, kState, "the lease worker is not running",
     "the lease worker is not running",
     "Wait until recovery has ended, or check the server's log for the reason."},
    {Blocker::no_region, Cause::lease, kState, "this server has no region to mint in",
     "no region is leased",
     "Check the lease server that \"snowflake.lease_conninfo\" names; the view snowflake.lease has "
     "more."},
    {Blocker::region_begins_later, Cause::lease, kState, "the ids of the region begin later",
     "the ids of the region begin later",
     "Check the time synchronization; after a recovery of the lease server, wait."},
    {Blocker::lease_ended, Cause::lease, kState, "the lease of region %s has ended",
     "the lease has ended",
     "Check the lease server that \"snowflake.lease_conninfo\" names; the view snowflake.lease has "
     "more."},
    {Blocker::not_installed, Cause::state_missing, kState,
     "extension \"snowflake\" is not installed in this database", "not installed",
     "Run CREATE EXTENSION snowflake."},
    {Blocker::other_extension, Cause::state_missing, kState,
     "extension \"snowflake\" in this database is another product", "another product",
     "Drop it, then run CREATE EXTENSION snowflake."},
    {Blocker::state_missing, Cause::state_missing, kState,
     "extension \"snowflake\" in this database has lost a part of its state",
     "a sequence of the extension is missing",
     "Restore it with ALTER EXTENSION snowflake ADD or ALTER ... RENAME, or restore the database "
     "from a backup. Do not drop the extension: its mark would be lost."},
    {Blocker::state_locked, Cause::none, 0, nullptr, "the extension is being altered",
     "Find the session that locks the sequences of schema snowflake in pg_locks."},
    {Blocker::seal_gone, Cause::none, 0, nullptr, "a sequence of the extension is gone",
     "Try again; if that does not help, restore the database from a backup."},
    {Blocker::seal_unset, Cause::seal, kState, "the layout of this database is not sealed",
     "the seal is lost",
     "Restore the database again; if it holds no ids, drop and create the extension."},
    {Blocker::seal_restored, Cause::seal, kState,
     "this database was restored under another layout than its ids have",
     "restored under another layout",
     "Create the extension under the dump's \"snowflake.layout\", tick and epoch in a new "
     "database, and restore there."},
    {Blocker::seal_not_carried, Cause::seal, kState,
     "the next dump of this database would not carry its layout",
     "the next dump would not carry the seal",
     "INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local."},
    {Blocker::region_outside_layout, Cause::seal, kState,
     "the layout of this database has no region %s", "region outside the layout",
     "Set \"snowflake.region\" to a region of the layout, reload, and connect again; or set "
     "\"snowflake.leased_regions\" and restart."},
    {Blocker::layout_not_leased, Cause::seal, kState,
     "this database has another layout than the fleet of this server",
     "another layout than the fleet",
     "Set \"snowflake.layout\", \"snowflake.tick\" and \"snowflake.epoch\" to the layout of the "
     "database on all servers of the fleet, and restart them."},
    {Blocker::fleet_left, Cause::lease, kState,
     "the ids of this database were minted under leases, and this server leases no region",
     "minted under leases, and this server leases no region",
     "Set \"snowflake.leased_regions\" and restart the server; if the database has left the fleet "
     "for good, set sequence snowflake.fleet to 0."},
    {Blocker::other_fleet, Cause::lease, kState, "this database belongs to another fleet",
     "of another fleet", "Correct \"snowflake.lease_conninfo\" and restart the server."},
    {Blocker::cloned, Cause::clone, kState, "this database last minted elsewhere",
     "last minted elsewhere",
     "Stop the original server, or give one of the two another region or other shards; then run "
     "SELECT snowflake.accept_clone()."},
    {Blocker::mark_not_permanent, Cause::mark_unsafe, kState,
     "the high-water mark would not survive a crash", "high-water mark not permanent",
     "Run ALTER SEQUENCE snowflake.high_water SET LOGGED."},
    {Blocker::mark_lost, Cause::mark_lost, kState, "the high-water mark of this database is lost",
     "high-water mark lost",
     "Set it with SELECT snowflake.set_mark(...) to a time after every id of this database."},
    {Blocker::mark_ahead, Cause::mark_ahead, kState,
     "the clock is behind the high-water mark of this database",
     "high-water mark ahead of the clock",
     "Check the time synchronization; if the mark is wrong, set it with SELECT "
     "snowflake.set_mark(...) to a time after every id."},
    {Blocker::too_many_databases, Cause::too_many_databases, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
     "too many databases use snowflake", "too many databases",
     "Drop one that is not needed: SELECT * FROM snowflake.databases."},
    {Blocker::clock_behind, Cause::clock_behind, kState, "the clock is behind the ids of shard %s",
     "clock behind the ids",
     "Check the time synchronization; minting resumes by itself when the clock has caught up."},
    {Blocker::commits_refused, Cause::none, 0, nullptr,
     "commits that mint are refused: clock not synchronized",
     "Check the time synchronization, or set \"snowflake.clock_error\" to the greatest error that "
     "the "
     "clock may have."},
    {Blocker::read_only_transaction, Cause::read_only, ERRCODE_READ_ONLY_SQL_TRANSACTION,
     "cannot execute %s in a read-only transaction", nullptr, "Use a read-write transaction."},
    {Blocker::parallel_operation, Cause::read_only, ERRCODE_INVALID_TRANSACTION_STATE,
     "cannot execute %s during a parallel operation", nullptr,
     "Label functions that mint PARALLEL UNSAFE."},
    {Blocker::shard_not_owned, Cause::not_owned, kState, "shard %s is not owned by this server",
     nullptr, "Insert on the server that owns the shard."},
    {Blocker::waited_too_long, Cause::waited_too_long, kState,
     "no id of shard %s was available in time", nullptr,
     "Spread the load over more shards, or raise \"snowflake.max_wait\"."},
    {Blocker::id_ahead, Cause::id_ahead, kState, "id %s is too far ahead of the clock", nullptr,
     "Compare the clocks of the servers."},
    {Blocker::beyond_lease, Cause::lease, kState,
     "the id is beyond the lease of this server's region", nullptr,
     "Observe it again when the lease has been renewed."},
    {Blocker::mark_uncommitted, Cause::mark_unsafe, kState,
     "the high-water mark has been altered in this transaction", nullptr,
     "Commit the transaction first."},
    {Blocker::extension_recreated, Cause::mark_unsafe, kState,
     "extension \"snowflake\" has been dropped and created again in this transaction", nullptr,
     "Commit the transaction first."},
    {Blocker::clock_unsynchronized, Cause::commit_wait, kState, "the clock is not synchronized",
     nullptr,
     "Check the time synchronization, or set \"snowflake.clock_error\" to the greatest error that "
     "the clock may have."},
    {Blocker::commit_wait, Cause::commit_wait, kState,
     "the commit would wait too long for the clock", nullptr,
     "Raise \"snowflake.max_wait\", or lower \"snowflake.max_clock_error\" on all servers if their "
     "clocks are better than that."},
};

constexpr bool in_order() {
  for (int i = 0; i < kBlockers; ++i)
    if (kTable[i].blocker != static_cast<Blocker>(i)) return false;
  return true;
}
static_assert(in_order());

using RefusalCounter = void (*)(Blocker);
constinit RefusalCounter count_refusal = nullptr;

}  // namespace

const RefusalText& text_of(Blocker blocker) {
  return kTable[static_cast<int>(blocker)];
}

void install_refusal_counter(void (*counter)(Blocker)) {
  count_refusal = counter;
}

void refuse(Blocker blocker, const char* subject, const char* detail) {
  refuse(blocker, subject, detail, text_of(blocker).hint);
}

void refuse(Blocker blocker, const char* subject, const char* detail, const char* hint) {
  const RefusalText& text = text_of(blocker);
  if (count_refusal != nullptr && text.cause != Cause::none) count_refusal(blocker);
  ereport(ERROR, (errcode(text.sqlstate), errmsg(text.message, subject),
                  errdetail_internal("%s", detail), errhint("%s", hint)));
}

}  // namespace snowflake::pg
