#include "pg/mark/condition.hpp"

#include "core/clock.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/mark/high_water.hpp"
#include "pg/memory/lease.hpp"
#include "pg/mark/seal_check.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/settings.hpp"
#include "pg/mark/state_sequences.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

int64_t furthest_ms(const DatabaseState& state) {
  uint64_t furthest = 0;
  const Shard* const words = words_of(state);
  for (uint32_t i = 0; i < word_count(); ++i) furthest = std::max(furthest, words[i].last());
  return furthest == 0 ? 0 : layout.ms_of_tick(layout.tick_of_position(furthest));
}

void set(Condition& condition, const char* reason, const char* advice) {
  if (condition.reason != nullptr) return;  // the first that applies
  condition.reason = reason;
  condition.advice = advice;
}

void look_at_seal(Condition& condition, const StateSequences& sequences) {
  Seals seals{};
  const SealFault fault = find_seal_fault(sequences, &seals);
  condition.sealed = seals.local;
  switch (fault) {
    case SealFault::none:
      return;
    case SealFault::gone:
      return set(condition, "a sequence of the extension is gone",
                 "Ask again; if that does not help, restore the database from a backup.");
    case SealFault::unset:
      return set(condition, "the seal is lost",
                 "Restore the database again; if it holds no ids, drop and create the extension.");
    case SealFault::restored:
      return set(condition, "restored under another layout",
                 "Set the dump's layout, tick and epoch in postgresql.conf, restart, and restore "
                 "into a new database.");
    case SealFault::not_carried:
      return set(condition, "the next dump would not carry the seal",
                 "INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local.");
    case SealFault::contradicted:
      return set(condition, "the settings contradict the seal",
                 "Set \"snowflake.layout\", \"snowflake.tick\" and \"snowflake.epoch\" to the "
                 "database's layout and restart the server.");
  }
}

// False where the page is locked: whoever writes it may be waiting for the disk.
bool try_read_mark(Relation mark, int64_t* mark_ms) {
  SequencePage page{};
  if (!SequencePage::try_open(mark, &page)) return false;
  *mark_ms = page.mark();
  page.close();
  return true;
}

void look_at_mark(Condition& condition, Oid high_water) {
  Relation mark = try_relation_open(high_water, NoLock);
  if (mark == nullptr) return;
  const int64_t highest_ms = condition.state == nullptr
                                 ? 0
                                 : condition.state->highest_mark_ms.load(std::memory_order_relaxed);
  const bool known = try_read_mark(mark, &condition.mark_ms);
  if (!known) condition.mark_ms = highest_ms;
  const bool permanent = mark->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT;
  relation_close(mark, NoLock);
  if (!permanent)
    set(condition, "high-water mark not permanent",
        "Run ALTER SEQUENCE snowflake.high_water SET LOGGED.");
  if (known && condition.mark_ms < layout.epoch_ms && highest_ms == 0)
    set(condition, "high-water mark lost",
        "Set it, with SELECT snowflake.set_mark(...), to a time that is later than every id of "
        "this database.");
  if (condition.mark_ms > highest_ms && is_ahead_of_clock(condition.mark_ms))
    set(condition, "high-water mark ahead of the clock",
        "Check the time synchronization; if it is the mark that is wrong, set it with SELECT "
        "snowflake.set_mark(...) to a time after every id.");
}

// Calls wait uninterruptibly where the WAL cannot be written, as every commit does.
void look_at_disk(Condition& condition) {
  constexpr int64_t kStalledUs = 1'000'000;
  if (condition.state != nullptr &&
      mark_stalled_for_us(statistics_of(*condition.state)) > kStalledUs)
    set(condition, "waiting for the disk of the WAL",
        "Check the disk that the WAL is on; calls go on when it answers.");
}

// What is minted here would not be covered by the leases that earlier ids were.
void look_at_fleet(Condition& condition, Oid fleet) {
  Relation sequence = try_relation_open(fleet, NoLock);
  if (sequence == nullptr) return;
  const int64_t remembered = SequencePage::read(sequence);
  relation_close(sequence, NoLock);
  if (remembered == 0) return;
  if (!leased())
    set(condition, "minted under leases, and nothing is leased",
        "Set \"snowflake.fleet\" and restart the server; if the database has left the fleet for "
        "good, set sequence snowflake.fleet to 0.");
  else if (lease_fleet() != 0 && lease_fleet() != remembered && remembered != kUnheardFleet)
    set(condition, "of another fleet", "Correct \"snowflake.fleet\" and restart the server.");
}

// What is locked against reading is being dropped or altered, and calls wait for it as well.
void look_at_sequences(Condition& condition) {
  const StateSequences sequences = present_state_sequences();
  if (!sequences.complete())
    return set(condition, "a sequence of the extension is missing",
               "Restore the database from a backup, or put back with ALTER EXTENSION what was "
               "taken out.");
  // What calls take: ALTER SEQUENCE locks against that and not against reading.
  const LOCKMODE write = RecoveryInProgress() ? AccessShareLock : RowExclusiveLock;
  const struct {
    Oid relation;
    LOCKMODE mode;
  } all[] = {{sequences.seal_local, AccessShareLock},
             {sequences.seal, AccessShareLock},
             {sequences.high_water, write},
             {sequences.fleet, AccessShareLock}};
  constexpr int kAll = sizeof(all) / sizeof(all[0]);
  int locked = 0;
  while (locked < kAll && ConditionalLockRelationOid(all[locked].relation, all[locked].mode))
    ++locked;
  if (locked == kAll) {
    look_at_seal(condition, sequences);
    look_at_fleet(condition, sequences.fleet);
    look_at_mark(condition, sequences.high_water);
  } else {
    set(condition, "the extension is being altered",
        "See in pg_locks who holds the sequences of schema snowflake.");
  }
  for (; locked > 0; --locked) UnlockRelationOid(all[locked - 1].relation, all[locked - 1].mode);
}

void look_at_lease(Condition& condition) {
  if (!leased()) return;
  const LeaseView lease = lease_view();
  // Elsewhere it has until the end of the lease to come back.
  if ((lease.region == kNoRegion || lease.until_ms <= condition.clock_ms) && !lease_worker_runs())
    return set(condition, "the lease worker is not running",
               "It starts when recovery has ended; else see in the server's log why it is gone.");
  if (lease.region == kNoRegion)
    return set(condition, "no region is leased",
               "See in the view snowflake.lease what the control database last said.");
  // What is published runs ahead of the clock; what counts is where ids of the region begin here.
  const int64_t begin_ms =
      condition.state == nullptr ? 0 : condition.state->begin_ms.load(std::memory_order_relaxed);
  if (is_ahead_of_clock(std::max(lease.floor_ms, begin_ms)))
    return set(condition, "the ids of the leased region begin later",
               "After a recovery of the control database, wait; else check the time "
               "synchronization.");
  if (lease.until_ms <= condition.clock_ms)
    set(condition, "the lease has ended",
        "See in the view snowflake.lease what the control database last said.");
}

void look_at_time(Condition& condition) {
  if (condition.clock_ms < layout.epoch_ms)
    return set(condition, "clock before the epoch",
               "Correct the clock; an epoch in the future is set right before the first id.");
  if (layout.tick_at(condition.clock_ms) > layout.last_minted_tick())
    return set(condition, "layout exhausted",
               "Move the database to a layout with more time bits or a later epoch.");
  if (clock_jumped_ahead())
    set(condition, "clock jumped ahead",
        "Correct the clock, or confirm it with SELECT snowflake.accept_clock().");
}

}  // namespace

Condition condition_of_database() {
  look_at_clock();
  Condition condition{};
  condition.clock_ms = wall_clock_ms();
  condition.state = find_database_state();
  if (condition.state != nullptr) {
    condition.lead_ms = std::max<int64_t>(0, furthest_ms(*condition.state) - condition.clock_ms);
    condition.covered_ms =
        layout.ms_of_tick(layout.tick_of_position(condition.state->limit.read()));
  }
  if (RecoveryInProgress()) set(condition, "standby", "Connect to the primary server.");
  if (owns_everything() && citus_is_preloaded())
    set(condition, "Citus node without a region or shards of its own",
        "Set \"snowflake.region\" or \"snowflake.owned_shards\", other ones on each node, and "
        "restart.");
  if (is_on_for_all("default_transaction_read_only"))
    set(condition, "read-only by default",
        "Set \"default_transaction_read_only\" to off when this server may write again.");
  look_at_disk(condition);
  look_at_time(condition);
  if (!RecoveryInProgress()) look_at_lease(condition);
  look_at_sequences(condition);
  if (!has_or_may_take_place())
    set(condition, "too many databases",
        "Raise \"snowflake.max_databases\" and restart the server.");
  if (condition.lead_ms > max_lead_ms + static_cast<int64_t>(layout.tick_ms))
    set(condition, "clock behind the ids",
        "Check the time synchronization; minting resumes by itself when the clock has caught up.");
  if (condition.minting() && condition.state != nullptr) end_refusals(*condition.state);
  return condition;
}

}  // namespace snowflake::pg
