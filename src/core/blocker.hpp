// Decides why no id is minted, for calls and for `health`. The input are facts, the result is the
// first blocker. The function itself reads no state.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

#include "core/origin_fingerprint.hpp"
#include "core/layout.hpp"
#include "core/lease.hpp"
#include "core/seal.hpp"

namespace snowflake {

enum class Blocker : uint8_t {
  none,

  // Blockers of the whole database or server. If several apply, the first one is shown.
  not_preloaded,     // and a setting needs it
  setting_rejected,  // by a session that loaded the library itself
  other_library,     // with other structures made the shared memory
  standby,
  setting_invalid,       // the region or the shards of the database
  node_without_origin,   // of Citus
  read_only_by_default,  // for all, by a setting
  flush_stalled,         // the disk of the WAL does not answer
  clock_before_epoch,
  layout_exhausted,
  clock_jumped,
  unsynchronized,  // the clock, and minting waits for synchronization
  lease_worker_gone,
  no_region,
  region_begins_later,
  lease_ended,
  not_installed,    // in this database
  other_extension,  // of the same name
  state_missing,    // a sequence of the extension
  state_locked,     // it is being altered or dropped
  seal_gone,        // a sequence was dropped between finding and reading it
  seal_unset,
  seal_restored,
  seal_not_carried,
  region_outside_layout,
  layout_not_leased,  // the fleet leases regions of another one
  fleet_left,         // minted under leases, and this server leases no region
  other_fleet,        // minted under another fleet's
  cloned,             // it last minted elsewhere, and that is not accepted
  mark_not_permanent,
  mark_lost,
  mark_ahead,  // of the clock
  too_many_databases,
  clock_behind,     // the ids of a shard
  commits_refused,  // ids are minted, and commits wait for a clock that is not synchronized

  // These block a single call.
  read_only_transaction,
  parallel_operation,
  shard_not_owned,
  waited_too_long,
  id_ahead,
  beyond_lease,
  mark_uncommitted,
  extension_recreated,
  clock_unsynchronized,
  commit_wait,
};
inline constexpr int kBlockers = static_cast<int>(Blocker::commit_wait) + 1;

// The stored fleet of a database until a lease server has answered. Numbers of fleets end at 2^48.
// It is far below INT64_MAX, so that monitors do not report an exhausted sequence.
inline constexpr int64_t kUnheardFleet = int64_t{1} << 60;

// Leases of another fleet do not cover the ids of a database. `remembered`: the fleet that it
// minted under, 0 if it minted without; `present`: the one that leases now, 0 while that is not
// known.
constexpr Blocker fleet_blocker(bool leased, int64_t remembered, int64_t present) {
  if (remembered == 0) return Blocker::none;
  if (!leased) return Blocker::fleet_left;
  if (remembered == kUnheardFleet || present == 0 || remembered == present) return Blocker::none;
  return Blocker::other_fleet;
}

// A mark before every id is lost, unless this server has a later one in memory.
constexpr bool is_mark_lost(const Layout& layout, int64_t stored_ms, int64_t highest_ms) {
  return stored_ms < layout.epoch_ms && highest_ms == 0;
}

// Whether a mark, or the beginning of a region, is so far ahead that calls wait for it.
constexpr bool is_ahead_of_clock(const Layout& layout, int64_t ms, int64_t clock_ms,
                                 int64_t max_lead_ms) {
  if (clock_ms < layout.epoch_ms) return ms > layout.epoch_ms;
  return layout.tick_of_position(position_from(layout, ms)) >
         layout.tick_at(clock_ms) + static_cast<uint64_t>(max_lead_ms) / layout.tick_ms;
}

constexpr Blocker time_blocker(const Layout& layout, int64_t clock_ms) {
  if (clock_ms < layout.epoch_ms) return Blocker::clock_before_epoch;
  if (layout.tick_at(clock_ms) > layout.last_minted_tick()) return Blocker::layout_exhausted;
  return Blocker::none;
}

// The input. Times are milliseconds since 1970. A field that is zero, except the clock, is no
// blocker: a call gathers one fact after the other, in the order of the checks, and checks after
// each.
struct Facts {
  bool layout_unknown;  // the seal was not read yet, so checks of the layout are skipped
  bool recovery;
  bool setting_invalid;
  bool node_without_origin;
  bool read_only_by_default;
  bool flush_stalled;

  int64_t clock_ms;
  int64_t max_lead_ms;
  bool clock_jumped;
  bool unsynchronized;  // and minting waits for that

  bool leased;  // the region is
  bool lease_worker_runs;
  int32_t region;  // of the database, or leased; kNoRegion: none at present
  int64_t region_begin_ms;
  int64_t lease_until_ms;
  int64_t leased_seal;  // of the fleet's layout; 0: not known
  uint64_t position;    // to be claimed; 0: none, so the end of the lease is no blocker

  Blocker state;      // not_installed, other_extension, state_missing, or none
  bool state_locked;  // then the fields that follow, up to the mark, are unknown
  Blocker seal;       // what is wrong with it, or none
  Seals seals;
  int64_t fleet_remembered;
  int64_t fleet_present;
  Moved moved;  // since it last minted
  bool clones_refused;
  Blocker mark;             // what is wrong with its relation, or none
  bool mark_known;          // false: it was not read, and mark_ms is the highest known
  int64_t mark_ms;          // as it is stored
  int64_t highest_mark_ms;  // of this server run; 0: none

  bool no_slot;          // and none may be taken
  int64_t lead_ms;       // of the ids before the clock
  bool commits_refused;  // of transactions that mint
};

constexpr Blocker region_blocker(const Layout& layout, const Facts& facts) {
  if (facts.recovery) return Blocker::none;
  const bool over = facts.leased && !facts.layout_unknown && facts.position != 0 &&
                    facts.position >= position_below(layout, facts.lease_until_ms);
  if (facts.leased) {
    // Elsewhere the worker has until the end of the lease to come back.
    if ((facts.region == kNoRegion || over) && !facts.lease_worker_runs)
      return Blocker::lease_worker_gone;
    if (facts.region == kNoRegion) return Blocker::no_region;
  }
  if (!facts.layout_unknown &&
      is_ahead_of_clock(layout, facts.region_begin_ms, facts.clock_ms, facts.max_lead_ms))
    return Blocker::region_begins_later;
  return over ? Blocker::lease_ended : Blocker::none;
}

constexpr Blocker state_blocker(const Layout& layout, const Facts& facts) {
  if (facts.state != Blocker::none) return facts.state;
  if (facts.state_locked) return Blocker::state_locked;
  if (facts.seal != Blocker::none) return facts.seal;
  if (facts.layout_unknown) return Blocker::none;
  if (facts.region != kNoRegion && static_cast<uint32_t>(facts.region) >= layout.regions())
    return Blocker::region_outside_layout;
  if (facts.leased_seal != 0 && facts.leased_seal != seal_of(layout))
    return Blocker::layout_not_leased;
  const Blocker fleet = fleet_blocker(facts.leased, facts.fleet_remembered, facts.fleet_present);
  if (fleet != Blocker::none) return fleet;
  if (facts.moved.any() && facts.clones_refused) return Blocker::cloned;
  if (facts.mark != Blocker::none) return facts.mark;
  if (facts.mark_known && is_mark_lost(layout, facts.mark_ms, facts.highest_mark_ms))
    return Blocker::mark_lost;
  if (facts.mark_ms > facts.highest_mark_ms &&
      is_ahead_of_clock(layout, facts.mark_ms, facts.clock_ms, facts.max_lead_ms))
    return Blocker::mark_ahead;
  return Blocker::none;
}

// The first that applies. Server before database, database before its ids.
constexpr Blocker blocker(const Layout& layout, const Facts& facts) {
  if (facts.recovery) return Blocker::standby;
  if (facts.setting_invalid) return Blocker::setting_invalid;
  if (facts.node_without_origin) return Blocker::node_without_origin;
  if (facts.read_only_by_default) return Blocker::read_only_by_default;
  if (facts.flush_stalled) return Blocker::flush_stalled;
  if (!facts.layout_unknown) {
    if (const Blocker time = time_blocker(layout, facts.clock_ms); time != Blocker::none)
      return time;
  }
  if (facts.clock_jumped) return Blocker::clock_jumped;
  if (facts.unsynchronized) return Blocker::unsynchronized;
  if (const Blocker region = region_blocker(layout, facts); region != Blocker::none) return region;
  if (const Blocker state = state_blocker(layout, facts); state != Blocker::none) return state;
  if (facts.no_slot) return Blocker::too_many_databases;
  // Load alone drives ids no further ahead than one tick past the lead.
  if (facts.lead_ms > facts.max_lead_ms + static_cast<int64_t>(layout.tick_ms))
    return Blocker::clock_behind;
  if (facts.commits_refused) return Blocker::commits_refused;
  return Blocker::none;
}

}  // namespace snowflake
