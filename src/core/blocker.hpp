// Decides whether a database may mint ids. The decision is Blocker::none if the database may mint
// ids, or else the state (blocker) that prevents minting. The functions that mint ids and the view
// `health` call blocker() to decide whether the database may mint.
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

  // States that prevent all minting in a database or on the server come first in the enum. If
  // several states prevent minting, blocker() returns the first of them in the order of the enum.
  not_preloaded,     // a setting requires that the library is preloaded
  setting_rejected,  // PostgreSQL rejected a setting while the library was loaded
  no_shared_memory,  // main shared memory has no room for the library
  other_library,     // another version of the extension's library created the shared memory
  standby,
  setting_invalid,       // the setting of the region or of the shards is invalid
  node_without_origin,   // a Citus node has the default region and shards
  read_only_by_default,  // default_transaction_read_only is on
  flush_stalled,         // WAL flushes do not return
  clock_before_epoch,
  layout_exhausted,
  clock_jumped,
  unsynchronized,  // the clock is not synchronized, and a setting forbids minting
  lease_worker_gone,
  no_region,
  region_begins_later,
  lease_ended,
  not_installed,
  other_extension,  // another extension is named snowflake
  state_missing,
  state_locked,  // another session alters or drops a sequence of the extension
  seal_gone,     // the stored layout was dropped while a session checked the layout of ids
  seal_unset,
  seal_restored,
  seal_not_carried,
  region_outside_layout,
  layout_not_leased,  // the lease server uses another layout of ids than the database
  fleet_left,         // the database has used leases, but leases are now off
  other_fleet,        // the database has used leases of another group of servers (fleet)
  cloned,             // the database is a clone, and accept_clone() was not called
  mark_not_permanent,
  mark_lost,
  mark_ahead,
  too_many_databases,
  clock_behind,     // the clock is behind the newest ids of a shard
  commits_refused,  // commits fail until the clock is synchronized

  // States that make only a single call fail come last in the enum.
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

// A database of a server with leases stores the number that identifies its fleet (group of servers)
// in a sequence. The database stores the constant kUnheardFleet until its server receives the
// number of the fleet from a lease server. The constant kUnheardFleet is not the number of a fleet,
// because the numbers of fleets are less than 2^48. The constant kUnheardFleet, a sequence value,
// is far below INT64_MAX, because monitoring tools warn about sequences near their maximum.
inline constexpr int64_t kUnheardFleet = int64_t{1} << 60;

// Prevents minting if the lease server and the ids of the database belong to different fleets
// (groups of servers). The argument `remembered` is the number of the fleet (group of servers)
// whose leases the database has used; 0: no leases. The argument `present` is the number of the
// fleet to which the present lease server belongs; 0: unknown.
constexpr Blocker fleet_blocker(bool leased, int64_t remembered, int64_t present) {
  if (remembered == 0) return Blocker::none;
  if (!leased) return Blocker::fleet_left;
  if (remembered == kUnheardFleet || present == 0 || remembered == present) return Blocker::none;
  return Blocker::other_fleet;
}

// A stored high-water mark before the epoch shows that the real high-water mark was lost. A lost
// high-water mark does no harm while the shared memory of the server still contains the mark.
constexpr bool is_mark_lost(const Layout& layout, int64_t stored_ms, int64_t highest_ms) {
  return stored_ms < layout.epoch_ms && highest_ms == 0;
}

// True if calls that mint must wait for the clock. `ms` is the earliest time in new ids: the
// high-water mark, or the time from which the database may use its region.
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

// Facts contains the values from which blocker() decides whether a database may mint ids. All times
// in Facts are in ms since 1970. A member of Facts with the value 0 does not prevent minting. Only
// clock_ms must always be set. A session can call blocker() before it has set all members of Facts,
// to find early a state that prevents minting.
struct Facts {
  bool layout_unknown;  // the session has not yet read the stored layout of ids
  bool recovery;
  bool setting_invalid;
  bool node_without_origin;
  bool read_only_by_default;
  bool flush_stalled;

  int64_t clock_ms;
  int64_t max_lead_ms;
  bool clock_jumped;
  bool unsynchronized;

  bool leased;
  bool lease_worker_runs;
  int32_t region;  // kNoRegion: no region is leased
  int64_t region_begin_ms;
  int64_t lease_until_ms;
  int64_t leased_seal;  // the layout of ids (as a number) on the lease server; 0: unknown
  uint64_t position;    // the next position (time and sequence number) to claim; 0: none

  Blocker state;      // not_installed, other_extension, state_missing, none
  bool state_locked;  // the extension's sequences are locked, so their values are unknown
  Blocker seal;
  Seals seals;
  int64_t fleet_remembered;
  int64_t fleet_present;
  Moved moved;
  bool clones_refused;
  Blocker mark;     // the reason why the high-water mark cannot be used, or Blocker::none
  bool mark_known;  // false: mark_ms was not read
  int64_t mark_ms;  // the stored high-water mark; if it was not read, the same as highest_mark_ms
  int64_t highest_mark_ms;  // the greatest high-water mark since the server started; 0: none

  bool no_slot;     // shared memory has no room for another database
  int64_t lead_ms;  // the time of the newest id minus the clock
  bool commits_refused;
};

constexpr Blocker region_blocker(const Layout& layout, const Facts& facts) {
  if (facts.recovery) return Blocker::none;
  const bool over = facts.leased && !facts.layout_unknown && facts.position != 0 &&
                    facts.position >= position_below(layout, facts.lease_until_ms);
  if (facts.leased) {
    // If the lease worker does not run, minting continues until the lease ends. The lease worker
    // may restart before the end of the lease.
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

// Returns the first state that prevents minting, or Blocker::none.
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
  // Unless the clock was set back, the newest id is at most "snowflake.max_lead" plus one tick
  // (time unit) ahead of the clock.
  if (facts.lead_ms > facts.max_lead_ms + static_cast<int64_t>(layout.tick_ms))
    return Blocker::clock_behind;
  if (facts.commits_refused) return Blocker::commits_refused;
  return Blocker::none;
}

}  // namespace snowflake
