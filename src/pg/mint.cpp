// next_id(), next_ids(), last_id().
//
// The hot path is a clock read and one compare-and-swap; everything else is checked against values
// that the backend holds, and found out again only where the claim is refused.

#include "core/clock.hpp"
#include "pg/clock_watch.hpp"
#include "pg/errors.hpp"
#include "pg/high_water.hpp"
#include "pg/session.hpp"
#include "pg/settings.hpp"
#include "pg/wait.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr int kMaxCount = 1000000;

void check_may_write(const char* function) {
  if (XactReadOnly) [[unlikely]]
    error_read_only(function);
  if (IsInParallelMode()) [[unlikely]]
    error_parallel(function);
}

void check_shard(int shard) {
  if (state == nullptr) [[unlikely]]
    error_not_preloaded();
  if (static_cast<uint32_t>(shard) >= layout.shards()) [[unlikely]]
    error_shard_range(shard);
  if (!owned_shards.contains(static_cast<uint32_t>(shard))) [[unlikely]]
    error_shard_not_owned(shard);
}

struct Reading {
  int64_t ms;
  bool exact;
};

Reading exact_clock() {
  return {wall_clock_ms(), true};
}

// How far the coarse clock is trusted to be near the exact one. It lags by a timer tick, 10 ms at
// most, and a virtual machine may be late with a few of them.
constexpr int64_t kCoarseMs = 60;

// A shard that is ahead of the clock gives the same id whatever the clock says up to there: a burst
// can do without the exact reading, which is most of what an id costs.
inline Reading clock_for(int shard) {
  if (shard == session.ahead_shard) {
    const int64_t ms = coarse_clock_ms();
    if (ms + kCoarseMs < session.ahead_ms && ms >= layout.epoch_ms) return {ms, false};
    session.ahead_shard = -1;
  }
  return exact_clock();
}

uint64_t tick_of(const Reading& clock) {
  if (clock.ms < layout.epoch_ms) [[unlikely]]
    error_clock_before_epoch(clock.ms);
  const uint64_t tick = layout.tick_at(clock.ms);
  if (tick > layout.last_minted_tick()) [[unlikely]]
    error_exhausted();
  if (clock.exact) {
    if (tick < session.last_now) [[unlikely]]
      look_at_clock();
    session.last_now = tick;
  }
  return tick;
}

// Claims between one and `wanted` ids, waiting for the clock and extending the mark as need be.
inline Claim claim(uint32_t shard, Shard& word, uint64_t wanted, uint64_t lead, Reading clock) {
  Patience patience;
  for (;; clock = exact_clock()) {
    if (!session.holds_limit()) [[unlikely]] {
      attach();
      continue;
    }
    const Bounds bounds{tick_of(clock), lead, session.limit,
                        static_cast<uint64_t>(sequence_spread)};
    const Claim claim = word.claim(layout, bounds, wanted);
    if (claim.outcome == Outcome::claimed) [[likely]] {
      if (claim.last() >= session.attention) [[unlikely]]
        extend_early(claim.last());
      return claim;
    }
    if (!clock.exact) continue;  // only the exact clock refuses
    switch (claim.outcome) {
      case Outcome::at_limit:
        extend_limit(claim.first);
        break;
      case Outcome::ahead_of_clock:
        wait_for_clock(shard, word, claim.first, lead, patience);
        break;
      default:
        error_exhausted();
    }
  }
}

// Flattened, so that a claim is not handed around in memory. The clock is read first: the checks
// then run while the processor still waits for it.
[[gnu::flatten]] int64_t next_id(int shard, const char* function) {
  const Reading clock = clock_for(shard);
  check_may_write(function);
  check_shard(shard);
  const auto number = static_cast<uint32_t>(shard);
  Shard& word = word_of(number);
  const Claim claimed = claim(number, word, 1, lead_ticks, clock);
  const uint64_t id = layout.id(claimed.first, number);
  account(word, claimed, 0, id);
  if (claimed.borrowed != 0) {
    session.ahead_shard = shard;
    session.ahead_ms = layout.ms_of_tick(layout.tick_of_position(claimed.first));
  }
  session.minted = true;
  session.last_id = static_cast<int64_t>(id);
  return session.last_id;
}

// A batch may use half of the lead, so that single calls find room beside it.
void next_ids(int shard, int count, int64_t* out) {
  const auto number = static_cast<uint32_t>(shard);
  Shard& word = word_of(number);
  auto left = static_cast<uint64_t>(count);
  uint64_t batches = 1;
  while (left > 0) {
    CHECK_FOR_INTERRUPTS();
    const Claim claimed = claim(number, word, left, lead_ticks / 2, exact_clock());
    const uint64_t last_id = layout.id(claimed.last(), number);
    write_ids(layout, number, claimed.first, claimed.count, out);
    account(word, claimed, batches, last_id);
    session.minted = true;
    session.last_id = static_cast<int64_t>(last_id);
    out += claimed.count;
    left -= claimed.count;
    batches = 0;
  }
}

}  // namespace

SF_SQL_FUNCTION(next_id) {
  if (PG_ARGISNULL(0)) [[unlikely]] {
    if (state == nullptr) error_not_preloaded();
    error_shard_null();
  }
  PG_RETURN_INT64(next_id(PG_GETARG_INT32(0), "next_id()"));
}

SF_SQL_FUNCTION(next_id_default) {
  if (state == nullptr) error_not_preloaded();
  if (default_shard < 0) error_shard_unset();
  PG_RETURN_INT64(next_id(default_shard, "next_id()"));
}

SF_SQL_FUNCTION(next_ids) {
  if (state == nullptr) error_not_preloaded();
  if (PG_ARGISNULL(0)) error_shard_null();
  if (PG_ARGISNULL(1)) error_count_null();
  const int shard = PG_GETARG_INT32(0);
  const int count = PG_GETARG_INT32(1);
  check_may_write("next_ids()");
  check_shard(shard);
  if (count < 1 || count > kMaxCount) error_count(count);

  // Filled in place: construct_array() would want an array of Datum to copy from.
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

SF_SQL_FUNCTION(last_id) {
  if (state == nullptr) error_not_preloaded();
  if (!session.minted) error_no_last_id();
  PG_RETURN_INT64(session.last_id);
}

}  // namespace snowflake::pg
