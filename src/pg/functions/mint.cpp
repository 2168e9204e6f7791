// Normally, next_id() needs only a clock reading and one compare-and-swap. The conditions for
// minting, such as the stored layout, were checked earlier, and next_id() reads cached results. If
// next_id() cannot get an id at once, next_id() repeats the checks of the conditions for minting.

#include <algorithm>

#include "core/tick_clock.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/clock/clock_source.hpp"
#include "pg/errors/errors.hpp"
#include "pg/mark/attach.hpp"
#include "pg/mark/high_water.hpp"
#include "pg/memory/mark_hold.hpp"
#include "pg/memory/open_mints.hpp"
#include "pg/memory/pending_counters.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/server/settings.hpp"
#include "pg/clock/wait.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constinit uint64_t last_tick = 0;  // exact clock reading

struct LastId {
  bool minted;
  int64_t id;
};
constinit LastId last{};

void check_may_write(const char* function) {
  if (XactReadOnly) [[unlikely]] {
    require_shared_state();  // counting a refused call needs the shared state
    error_read_only(function);
  }
  if (IsInParallelMode()) [[unlikely]]
    error_parallel(function);
}

// Before a session has read the stored layout (seal), `layout` may differ from the layout of the
// database.
void check_shard_of_seal(int shard) {
  WaitBudget budget;
  while (!hold.good()) attach(budget);
  if (static_cast<uint32_t>(shard) >= layout.shards()) error_shard_range(shard);
}

void check_shard(int shard) {
  require_shared_state();
  if (static_cast<uint32_t>(shard) >= layout.shards()) [[unlikely]]
    check_shard_of_seal(shard);
  // The owned shards are unknown before attach(), so claim() calls check_shard() again after each
  // call of attach().
  if (!owned_shards.contains(static_cast<uint32_t>(shard)) && hold.good()) [[unlikely]]
    error_shard_not_owned(shard, owned_shards);
}

constinit TickClock tick_clock{};

struct Reading {
  int64_t ms;
  bool exact;
};

Reading exact_clock() {
  return {tick_clock.read_ms(counter_is_used()), true};
}

inline Reading read_clock() {
  if (tick_clock.is_fresh()) [[likely]]
    return {tick_clock.ms(), false};
  return exact_clock();
}

uint64_t current_tick(const Reading& clock) {
  if (clock.ms < layout.epoch_ms) [[unlikely]]
    error_clock_before_epoch(clock.ms);
  const uint64_t tick = layout.tick_at(clock.ms);
  if (tick > layout.last_minted_tick()) [[unlikely]]
    error_exhausted();
  if (clock.exact) {
    if (tick < last_tick) [[unlikely]]
      check_clock();
    last_tick = tick;
  }
  return tick;
}

struct Source {
  Shard* counter;
  uint32_t region;
};

// Takes at least one new id and at most `wanted` new ids of a shard. If necessary, claim() waits
// for the clock or raises the high-water mark. Claimed ids may be ahead of the clock by at most
// "snowflake.max_lead" divided by the argument `lead_parts`. The argument `source` is an
// out-parameter, because a larger return value would be passed on the stack.
inline Claim claim(uint32_t shard, uint64_t wanted, uint64_t lead_parts, Reading clock,
                   Source& source) {
  WaitBudget budget;
  for (;; clock = exact_clock()) {
    if (!hold.good()) [[unlikely]] {
      attach(budget);
      check_shard(static_cast<int>(shard));
      continue;
    }
    const uint64_t lead = lead_ticks / lead_parts;
    Shard& counter = shard_counter(hold.counters, shard);
    source = {&counter, hold.region};
    const Bounds bounds{current_tick(clock), lead, hold.limit, sequence_starts};
    const Claim claimed =
        claim_recorded(mint_record, own_mint_slot, counter, layout, bounds, wanted);
    if (claimed.outcome == Outcome::claimed) [[likely]] {
      if (claimed.last() >= hold.extend_early_at) [[unlikely]]
        extend_early(claimed.last());
      return claimed;
    }
    if (!clock.exact) continue;  // the clock must be read again first
    switch (claimed.outcome) {
      case Outcome::at_limit:
        extend_limit(claimed.first, budget);
        break;
      case Outcome::ahead_of_clock:
        wait_for_clock(shard, counter, claimed.first, lead, budget);
        break;
      default:
        error_exhausted();
    }
  }
}

void remember(uint64_t id) {
  last.minted = true;
  last.id = static_cast<int64_t>(id);
}

// The attribute "flatten" inlines claim(), so that its results stay in registers. The function
// next_id() reads the clock first, because the processor can execute the checks (out of order)
// during the slow clock reading.
[[gnu::flatten]] int64_t next_id(int shard, const char* function) {
  const Reading clock = read_clock();
  check_may_write(function);
  check_shard(shard);
  const auto number = static_cast<uint32_t>(shard);
  Source source;
  const Claim claimed = claim(number, 1, 1, clock, source);
  const uint64_t id = layout.id(claimed.first, source.region, number);
  account(*source.counter, claimed, 0, id);
  remember(id);
  return last.id;
}

// Ids of a batch are at most half of "snowflake.max_lead" ahead of the clock. An id that next_id()
// returns can be up to "snowflake.max_lead" ahead of the clock.
void next_ids(int shard, int count, int64_t* out) {
  const auto number = static_cast<uint32_t>(shard);
  auto left = static_cast<uint64_t>(count);
  uint64_t batches = 1;
  uint64_t newest = 0;
  while (left > 0) {
    CHECK_FOR_INTERRUPTS();
    Source source;
    const Claim claimed = claim(number, left, 2, exact_clock(), source);
    const uint64_t last_id = layout.id(claimed.last(), source.region, number);
    write_ids(layout, source.region, number, claimed.first, claimed.count, out);
    account(*source.counter, claimed, batches, last_id);
    newest = last_id;
    out += claimed.count;
    left -= claimed.count;
    batches = 0;
  }
  remember(newest);
}

// Raises the shard counter, so that the next id of the shard is greater than `after`. The function
// advance_past() waits while `after` is too far ahead of the clock, so that one wrong id cannot
// move a shard into the future.
void advance_past(int shard, int64_t after, uint64_t lead_parts) {
  require_seal();
  const auto number = static_cast<uint32_t>(shard);
  WaitBudget budget;
  for (;;) {
    if (!hold.good()) {
      attach(budget);
      check_shard(shard);
      continue;
    }
    if (!layout.contains(static_cast<uint64_t>(after))) error_foreign_id(after);
    const uint64_t lead = lead_ticks / lead_parts;
    const uint64_t floor = layout.first_position_after(static_cast<uint64_t>(after),
                                                       layout.origin(hold.region, number));
    if (layout.tick_of_position(floor) <= current_tick(exact_clock()) + lead) {
      shard_counter(hold.counters, number).raise_floor(floor);
      return;
    }
    wait_for_id(after, floor, lead, budget);
  }
}

Datum array_of_ids(int shard, int count) {
  // The ids are written directly into the array, because construct_array() would need a second
  // array of Datum.
  const Size size = ARR_OVERHEAD_NONULLS(1) + sizeof(int64_t) * static_cast<Size>(count);
  const auto array = static_cast<ArrayType*>(palloc(size));
  SET_VARSIZE(array, size);
  array->ndim = 1;
  array->dataoffset = 0;
  array->elemtype = INT8OID;
  ARR_DIMS(array)[0] = count;
  ARR_LBOUND(array)[0] = 1;
  next_ids(shard, count, reinterpret_cast<int64_t*>(ARR_DATA_PTR(array)));
  PG_RETURN_ARRAYTYPE_P(array);
}

void check_batch(FunctionCallInfo fcinfo) {
  require_shared_state();
  if (PG_ARGISNULL(0)) error_shard_null();
  if (PG_ARGISNULL(1)) error_count_null();
  check_may_write("next_ids()");
  check_shard(PG_GETARG_INT32(0));
  const int count = PG_GETARG_INT32(1);
  if (count < 1 || count > kMaxBatch) error_count(count);
}

}  // namespace

SF_SQL_FUNCTION(next_id) {
  if (PG_ARGISNULL(0)) [[unlikely]] {
    require_shared_state();
    error_shard_null();
  }
  PG_RETURN_INT64(next_id(PG_GETARG_INT32(0), "next_id()"));
}

SF_SQL_FUNCTION(next_id_default) {
  require_shared_state();
  if (default_shard < 0) error_shard_unset();
  PG_RETURN_INT64(next_id(default_shard, "next_id()"));
}

SF_SQL_FUNCTION(next_id_after) {
  require_shared_state();
  if (PG_ARGISNULL(0)) error_shard_null();
  const int shard = PG_GETARG_INT32(0);
  check_may_write("next_id()");
  check_shard(shard);
  if (PG_ARGISNULL(1)) PG_RETURN_INT64(next_id(shard, "next_id()"));
  const int64_t after = PG_GETARG_INT64(1);
  // If the server has lost its leased region, ids of the next leased region can be less than
  // `after`.
  for (;;) {
    advance_past(shard, after, 1);
    const int64_t id = next_id(shard, "next_id()");
    if (id > after) PG_RETURN_INT64(id);
  }
}

SF_SQL_FUNCTION(next_id_near) {
  require_shared_state();
  if (PG_ARGISNULL(0)) error_id_null();
  check_may_write("next_id_near()");
  require_seal();
  const int64_t id = PG_GETARG_INT64(0);
  if (!layout.contains(static_cast<uint64_t>(id))) error_foreign_id(id);
  const uint32_t shard = layout.shard_of(static_cast<uint64_t>(id));
  PG_RETURN_INT64(next_id(static_cast<int>(shard), "next_id_near()"));
}

SF_SQL_FUNCTION(next_ids) {
  check_batch(fcinfo);
  return array_of_ids(PG_GETARG_INT32(0), PG_GETARG_INT32(1));
}

SF_SQL_FUNCTION(next_ids_after) {
  check_batch(fcinfo);
  const int shard = PG_GETARG_INT32(0);
  const int count = PG_GETARG_INT32(1);
  if (PG_ARGISNULL(2)) return array_of_ids(shard, count);
  const int64_t after = PG_GETARG_INT64(2);
  for (;;) {
    advance_past(shard, after, 2);
    const Datum ids = array_of_ids(shard, count);
    const auto first = reinterpret_cast<const int64_t*>(ARR_DATA_PTR(DatumGetArrayTypeP(ids)));
    if (std::all_of(first, first + count, [=](int64_t id) { return id > after; })) return ids;
  }
}

SF_SQL_FUNCTION(last_id) {
  require_shared_state();
  if (!last.minted) error_no_last_id();
  PG_RETURN_INT64(last.id);
}

}  // namespace snowflake::pg
