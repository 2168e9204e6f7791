#include "pg/errors/refusal.hpp"

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr int kState = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;

// A refused call is a call that fails because it gets no id, or because its id argument is too far
// in the future. Refused calls before the shared memory exists are not counted. Errors of
// now_bounds() are not counted, because now_bounds() requests no id.
constexpr RefusalText kTable[kBlockers] = {
    {Blocker::none, Cause::none, 0, nullptr, nullptr, nullptr},
    {Blocker::not_preloaded, Cause::none, kState,
     "setting \"%s\" requires the library snowflake to be preloaded",
     "a setting requires the library to be preloaded",
     "Add snowflake to \"shared_preload_libraries\" and restart the server."},
    {Blocker::setting_rejected, Cause::none, kState, "the configured value of \"%s\" was rejected",
     "a setting was rejected",
     "Correct the setting in postgresql.conf, ALTER DATABASE, ALTER ROLE or the connection "
     "options, and connect again."},
    {Blocker::no_shared_memory, Cause::none, ERRCODE_OUT_OF_MEMORY,
     "PostgreSQL's shared memory has no room for snowflake",
     "no room in PostgreSQL's shared memory",
     "Add snowflake to \"shared_preload_libraries\" and restart the server."},
    {Blocker::other_library, Cause::none, kState,
     "another version of the library snowflake created the shared memory of this server",
     "another version of the library created the shared memory",
     "Restart the server, or reinstall the package version that the server started with."},
    {Blocker::standby, Cause::read_only, ERRCODE_READ_ONLY_SQL_TRANSACTION,
     "cannot execute %s during recovery", "standby", "Connect to the primary server."},
    {Blocker::setting_invalid, Cause::not_owned, kState, "the value of \"%s\" is invalid",
     "invalid \"snowflake.region\" or \"snowflake.owned_shards\"",
     "Set \"snowflake.region\" and \"snowflake.owned_shards\" with ALTER DATABASE, and connect "
     "again."},
    {Blocker::node_without_origin, Cause::not_owned, kState,
     "this Citus node would mint the same ids as other nodes",
     "this Citus node has the default region and shards",
     "Set \"snowflake.region\" or \"snowflake.owned_shards\" to a different value on each node, "
     "reload, and connect again."},
    {Blocker::read_only_by_default, Cause::read_only, ERRCODE_READ_ONLY_SQL_TRANSACTION,
     "cannot execute %s in a read-only transaction", "\"default_transaction_read_only\" is on",
     "If this server may write again, set \"default_transaction_read_only\" to off."},
    {Blocker::flush_stalled, Cause::none, 0, nullptr, "waiting for the WAL to be flushed to disk",
     "Check the disk that stores pg_wal. Calls continue when the WAL is flushed."},
    {Blocker::clock_before_epoch, Cause::clock_before_epoch, kState,
     "the clock is before the epoch of the ids", "clock before the epoch of the ids",
     "Correct the clock. If the epoch is wrong and no id exists yet, create the extension again "
     "with another \"snowflake.epoch\"."},
    {Blocker::layout_exhausted, Cause::exhausted, ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
     "the id layout has no time values left", "id layout has no time values left",
     "Move the database to a layout with more time bits or a later epoch."},
    {Blocker::clock_jumped, Cause::clock_jumped, kState, "the clock jumped ahead by %s",
     "clock jumped ahead",
     "If the clock is wrong, correct the clock. If the clock is right, run SELECT "
     "snowflake.accept_clock()."},
    {Blocker::unsynchronized, Cause::unsynchronized, kState,
     "no ids are minted because the clock is not synchronized", "clock not synchronized",
     "Check the time synchronization, or set \"snowflake.clock_error\" to the maximum error of the "
     "clock."},
    {Blocker::lease_worker_gone, Cause::lease, kState,
     "the background worker \"snowflake lease\" is not running",
     "the background worker \"snowflake lease\" is not running",
     "Check the server log. If the server was started or promoted just now, try again."},
    {Blocker::no_region, Cause::lease, kState, "this server has not leased a region",
     "no region is leased",
     "Read the view snowflake.lease, and check the lease server in \"snowflake.lease_conninfo\"."},
    {Blocker::region_begins_later, Cause::lease, kState,
     "this database cannot mint ids of its region yet",
     "this database cannot mint ids of its region yet",
     "Check the time synchronization. If the lease server was restored from a backup, wait "
     "until the clock reaches the time from which ids of the region may be minted."},
    {Blocker::lease_ended, Cause::lease, kState, "the lease of region %s has ended",
     "the lease of the region has ended",
     "Read the view snowflake.lease, and check the lease server in \"snowflake.lease_conninfo\"."},
    {Blocker::not_installed, Cause::state_missing, kState,
     "extension \"snowflake\" is not installed in this database", "not installed",
     "Run CREATE EXTENSION snowflake."},
    {Blocker::other_extension, Cause::state_missing, kState,
     "extension \"snowflake\" in this database is another product",
     "another extension named snowflake is installed",
     "Drop the installed extension, then run CREATE EXTENSION snowflake."},
    {Blocker::state_missing, Cause::state_missing, kState,
     "extension \"snowflake\" in this database lacks a sequence or table",
     "a sequence or table of the extension is missing",
     "If the sequence or table was renamed, give it its old name. If it was removed from the "
     "extension, add it with ALTER EXTENSION. If it was dropped, restore the database from a "
     "backup. Do not drop the extension, because the high-water mark would be lost."},
    {Blocker::state_locked, Cause::none, 0, nullptr,
     "another session has locked a sequence of the extension",
     "In pg_locks, find the session that locks a sequence of schema snowflake."},
    {Blocker::seal_gone, Cause::none, 0, nullptr,
     "a sequence of the extension was dropped during the check",
     "Query the view again. If it shows the same reason, restore the database from a backup."},
    {Blocker::seal_unset, Cause::seal, kState, "the recorded id layout of this database is lost",
     "the recorded id layout is lost",
     "Restore the database again. If the database contains no ids, drop and create the extension."},
    {Blocker::seal_restored, Cause::seal, kState,
     "the restored ids have another layout than this database",
     "restored ids have another layout than this database",
     "In a new database, create the extension with the dump's \"snowflake.layout\", "
     "\"snowflake.tick\" and \"snowflake.epoch\". Then restore the dump into the new database."},
    {Blocker::seal_not_carried, Cause::seal, kState,
     "a dump of this database would not contain the layout of its ids",
     "a dump would not contain the id layout",
     "Run INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local."},
    {Blocker::region_outside_layout, Cause::seal, kState,
     "the layout of this database has no region %s",
     "\"snowflake.region\" is not a region of the layout",
     "Set \"snowflake.region\" to a region of the layout, reload, and connect again. If the region "
     "is leased, set \"snowflake.leased_regions\" and restart."},
    {Blocker::layout_not_leased, Cause::seal, kState,
     "the id layout of this database differs from the id layout of the lease server",
     "the id layout differs from the id layout of the lease server",
     "On all servers that use this lease server, set \"snowflake.layout\", \"snowflake.tick\" and "
     "\"snowflake.epoch\" to the layout of the database, and restart."},
    {Blocker::fleet_left, Cause::lease, kState,
     "this database minted its ids under leases, but this server leases no region",
     "ids were minted under leases, but this server leases no region",
     "Set \"snowflake.leased_regions\" and restart the server. If the database must not use leases "
     "any more, run SELECT setval('snowflake.fleet', 0, false)."},
    {Blocker::other_fleet, Cause::lease, kState,
     "this database minted its ids under leases of another lease server",
     "ids were minted under leases of another lease server",
     "Correct \"snowflake.lease_conninfo\" and restart the server."},
    {Blocker::cloned, Cause::clone, kState,
     "this database was copied or moved after it minted its last ids",
     "the database may be a clone",
     "Stop the original server, or set another \"snowflake.region\" or \"snowflake.owned_shards\" "
     "on one of the two servers. Then run SELECT snowflake.accept_clone()."},
    {Blocker::mark_not_permanent, Cause::mark_unsafe, kState,
     "the high-water mark (sequence snowflake.high_water) would not survive a crash",
     "sequence snowflake.high_water is not a permanent relation",
     "Run ALTER SEQUENCE snowflake.high_water SET LOGGED."},
    {Blocker::mark_lost, Cause::mark_lost, kState,
     "the high-water mark (sequence snowflake.high_water) of this database is lost",
     "high-water mark (sequence snowflake.high_water) lost",
     "Run SELECT snowflake.set_mark(...) with a time after every id of this database."},
    {Blocker::mark_ahead, Cause::mark_ahead, kState,
     "the clock is behind the high-water mark (sequence snowflake.high_water)",
     "high-water mark (sequence snowflake.high_water) ahead of the clock",
     "Check the time synchronization. If the mark is wrong, run SELECT snowflake.set_mark(...) "
     "with a time after every id."},
    {Blocker::too_many_databases, Cause::too_many_databases, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
     "too many databases use snowflake", "too many databases",
     "Drop a database that is not needed. The view snowflake.databases lists the databases."},
    {Blocker::clock_behind, Cause::clock_behind, kState, "the clock is behind the ids of shard %s",
     "clock behind the ids",
     "Check the time synchronization. Minting resumes automatically when the clock has caught up."},
    {Blocker::commits_refused, Cause::none, 0, nullptr,
     "transactions with new ids cannot commit: clock not synchronized",
     "Check the time synchronization, or set \"snowflake.clock_error\" to the maximum error of the "
     "clock."},
    {Blocker::read_only_transaction, Cause::read_only, ERRCODE_READ_ONLY_SQL_TRANSACTION,
     "cannot execute %s in a read-only transaction", nullptr, "Use a read-write transaction."},
    {Blocker::parallel_operation, Cause::read_only, ERRCODE_INVALID_TRANSACTION_STATE,
     "cannot execute %s during a parallel operation", nullptr,
     "Declare functions that mint ids as PARALLEL UNSAFE."},
    {Blocker::shard_not_owned, Cause::not_owned, kState, "shard %s is not owned by this server",
     nullptr, "Insert on the server that owns the shard."},
    {Blocker::waited_too_long, Cause::waited_too_long, kState,
     "no id of shard %s was available in time", nullptr,
     "Spread the load over more shards, or raise \"snowflake.max_wait\"."},
    {Blocker::id_ahead, Cause::id_ahead, kState, "id %s is too far ahead of the clock", nullptr,
     "Compare the clocks of the servers."},
    {Blocker::beyond_lease, Cause::lease, kState,
     "the time of the id is after the end of this server's lease", nullptr,
     "Repeat the call after the lease has been renewed."},
    {Blocker::mark_uncommitted, Cause::mark_unsafe, kState,
     "sequence snowflake.high_water has been altered in this transaction", nullptr,
     "Commit the transaction first."},
    {Blocker::extension_recreated, Cause::mark_unsafe, kState,
     "extension \"snowflake\" has been dropped and created again in this transaction", nullptr,
     "Commit the transaction first."},
    {Blocker::clock_unsynchronized, Cause::commit_wait, kState, "the clock is not synchronized",
     nullptr,
     "Check the time synchronization, or set \"snowflake.clock_error\" to the maximum error of the "
     "clock."},
    {Blocker::commit_wait, Cause::commit_wait, kState,
     "the commit would wait too long for the clock", nullptr,
     "Raise \"snowflake.max_wait\". If the clocks of all servers are more precise, lower "
     "\"snowflake.max_clock_error\" on all servers."},
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
