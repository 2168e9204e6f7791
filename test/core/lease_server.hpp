// Implements the lease server's decisions a second time, as a reference model for tests.
//
// In production, the SQL function decide() in extensions/lease/src/sql/decide.sql makes the
// decisions of the lease server. The test extensions/lease/t/021_transcription.pl compares the
// answers of the model and of decide(), request by request.
//
// The caller of decide() must hold the lock of the lease server. The caller commits the rows that
// decide() has changed, and sends the answer only after the commit is durable.
//
// Invariants, per region:
//
//  1. A region is granted only to the server that is configured with it.
//
//  2. The start (`floor`) and the end (`until`) of a region's lease never become earlier, and floor
//     <= until. There are three exceptions. If a server gives a region back, the region's `until`
//     becomes the time up to which the server may have minted ids. If an administrator calls
//     confirm_dead(), the end of the lease (`until`) moves back to the latest possible time of the
//     stopped server's ids. Ids of a stopped server are later than the present time by at most the
//     sum of "snowflake.max_lead", "snowflake.reserve" and max_skew. If a server continues its
//     lease after a recovery of the lease server, `floor` becomes the start of the continued lease.
//
//  3. A new lease begins (`floor`) after the times of all ids that earlier holders minted in the
//     region. An earlier holder may be a run (incarnation) of the same server. A server that holds
//     a region mints only ids before the end (`until`) of its lease.
//
//  4. The end time that the lease server stores for a region (`until`) is never before the end of
//     any granted lease of this region. A restored lease server may have lost leases. Each lost
//     lease ends within longest_ms, the longest duration of a lease. The function
//     confirm_data_loss() sets the end of every lease (`until`) later, to more than longest_ms
//     after the present time.
#pragma once

#include <span>

#include "core/lease.hpp"

namespace snowflake {

enum class RegionState : uint8_t {
  given_back,  // or never granted
  held,
  revoked,  // revoked by an operator
  lost,     // holder may continue
};

struct LeasedRegion {
  int64_t floor_ms = 0;     // start of the lease
  int64_t until_ms = 0;     // end of the lease
  int64_t incarnation = 0;  // of the holder; 0: none
  int64_t grant = 0;
  int64_t nonce = 0;    // last nonce of the holder
  int32_t server = -1;  // -1: none yet
  RegionState state = RegionState::given_back;
};

struct FleetState {
  int64_t term;  // see term_at()
  int64_t newest;
  int64_t newest_ms;      // reached by both clocks
  int64_t longest_ms;     // lease plus lead
  int64_t skew_ms;        // between two clocks
  bool halted;            // see confirm_data_loss()
  int64_t reported_term;  // newest term in any request
  int64_t began;          // `newest` when the term began
  int64_t lasting;        // oldest term whose leases continue
  int64_t adopt_ms;       // earlier leases ended; 0: all
};

// Returns the number of the term that begins with a recovery of the lease server. Later terms have
// greater numbers. The 20 bits of `salt` distinguish two recoveries of the lease server in the same
// millisecond.
constexpr int64_t term_at(int64_t now_ms, int64_t salt) noexcept {
  return now_ms << 20 | (salt & 0xfffff);
}

namespace lease_detail {

// Returns an answer that grants no lease. The lease server numbers its answers, but a refusal has
// the number 0.
constexpr LeaseAnswer refusal(const FleetState& fleet, const LeaseRequest& request,
                              AnswerStatus status, int64_t clock_ms) noexcept {
  LeaseAnswer result{};
  result.call = request.call;
  result.status = status;
  result.incarnation = request.incarnation;
  result.term = fleet.term;
  result.region = kNoRegion;
  result.clock_ms = clock_ms;
  return result;
}

constexpr LeaseAnswer answer(FleetState& fleet, const LeaseRequest& request, AnswerStatus status,
                             int64_t clock_ms) noexcept {
  LeaseAnswer result = refusal(fleet, request, status, clock_ms);
  result.number = ++fleet.newest;
  return result;
}

// A lease has ended when the clocks of both the requesting server and the lease server have passed
// its end.
constexpr int64_t earlier_clock(const LeaseRequest& request, int64_t clock_ms) noexcept {
  return std::min(request.clock_ms, clock_ms);
}

constexpr LeaseAnswer grant(FleetState& fleet, std::span<LeasedRegion> regions, int32_t number,
                            const LeaseRequest& request, int64_t clock_ms, bool anew) noexcept {
  LeasedRegion& region = regions[static_cast<size_t>(number)];
  LeaseAnswer result = answer(fleet, request, AnswerStatus::granted, clock_ms);
  const int64_t longest = std::clamp<int64_t>(request.length_ms, 0, fleet.longest_ms);
  result.until_ms = std::max(
      region.floor_ms, earlier_clock(request, clock_ms) + grant_length(request.age_ms, longest));
  region.until_ms = std::max(region.until_ms, result.until_ms);
  region.nonce = request.nonce;
  if (anew) region.grant = result.number;
  result.region = number;
  result.grant = region.grant;
  result.floor_ms = region.floor_ms;
  return result;
}

// Returns the time from which the lease server may grant a free region. When a server gives a
// region back, the end of its lease (`until`) becomes the time up to which the server may have
// minted ids. Servers reserve ids ahead of their clocks ("snowflake.reserve"), so `until` may be in
// the future. If a region was given back, the lease server may grant it from kGivenBackAheadMs (10
// s) before the end of its lease (`until`). If a server gives a region back with an end more than
// 10 s in the future, the clock of the server is probably wrong.
inline constexpr int64_t kGivenBackAheadMs = 10'000;
constexpr int64_t free_from(const LeasedRegion& region) noexcept {
  return region.state == RegionState::given_back ? region.until_ms - kGivenBackAheadMs
                                                 : region.until_ms;
}

// Chooses a free region for the server that requests a lease. The first choice is a region that was
// given back and whose lease has ended, because ids can be minted there at once. If there are
// several such regions, the region with the newest lease is chosen. The second choice is the region
// that has been unused for the longest time.
constexpr int32_t choose(std::span<const LeasedRegion> regions, std::span<const int32_t> own,
                         int64_t earlier_ms) noexcept {
  int32_t last = kNoRegion;
  int32_t oldest = kNoRegion;
  for (const int32_t i : own) {
    const LeasedRegion& region = regions[static_cast<size_t>(i)];
    if (free_from(region) > earlier_ms) continue;
    if (region.state == RegionState::given_back && region.until_ms <= earlier_ms &&
        (last == kNoRegion || region.grant > regions[static_cast<size_t>(last)].grant))
      last = i;
    if (oldest == kNoRegion || region.until_ms < regions[static_cast<size_t>(oldest)].until_ms)
      oldest = i;
  }
  return last != kNoRegion ? last : oldest;
}

constexpr bool holds(const LeasedRegion& region, const LeaseRequest& request) noexcept {
  return region.incarnation != 0 && region.incarnation == request.incarnation &&
         region.server == request.server;
}

constexpr int32_t held_by(std::span<const LeasedRegion> regions, std::span<const int32_t> own,
                          const LeaseRequest& request) noexcept {
  for (const int32_t i : own)
    if (holds(regions[static_cast<size_t>(i)], request)) return i;
  return kNoRegion;
}

constexpr LeaseAnswer acquire(FleetState& fleet, std::span<LeasedRegion> regions,
                              std::span<const int32_t> own, const LeaseRequest& request,
                              int64_t clock_ms) noexcept {
  // If a server repeats its request, the server gets the same region again, because the first
  // answer may have been lost. A repeated grant has a new number, so that a late request to give
  // back the first grant has no effect.
  int32_t number = held_by(regions, own, request);
  if (number != kNoRegion) return grant(fleet, regions, number, request, clock_ms, true);

  number = choose(regions, own, earlier_clock(request, clock_ms));
  if (number == kNoRegion) {
    LeaseAnswer full = answer(fleet, request, AnswerStatus::full, clock_ms);
    for (const int32_t i : own) {
      const int64_t free_ms = free_from(regions[static_cast<size_t>(i)]);
      if (full.until_ms == 0 || free_ms < full.until_ms) full.until_ms = free_ms;
    }
    return full;
  }
  LeasedRegion& region = regions[static_cast<size_t>(number)];
  region.floor_ms = region.until_ms = std::max(region.floor_ms, region.until_ms);
  region.incarnation = request.incarnation;
  region.state = RegionState::held;
  return grant(fleet, regions, number, request, clock_ms, true);
}

// Returns true if a lease that was granted before a recovery of the lease server may continue. A
// lease may continue only if it ends after the time `adopt_ms`, because such a lease had not ended
// when the lease server was recovered. Before a lease has ended, no other server can hold a newer
// lease of its region. A renewal that a server sent before the lease server was recovered may
// arrive after the server has given its region back. If the recovery lost data, decide() answers an
// earlier renewal with term_over, so the server must send a new renewal. A lease that an operator
// has revoked does not continue.
constexpr bool may_adopt(const FleetState& fleet, const LeasedRegion& region,
                         const LeaseRequest& request) noexcept {
  return fleet.adopt_ms != 0 && request.until_ms > fleet.adopt_ms &&
         region.state == RegionState::lost &&
         (region.server == -1 || region.server == request.server);
}

constexpr LeaseAnswer adopt(FleetState& fleet, std::span<LeasedRegion> regions,
                            const LeaseRequest& request, int64_t clock_ms) noexcept {
  LeasedRegion& region = regions[static_cast<size_t>(request.region)];
  region.floor_ms = request.floor_ms;
  region.until_ms = std::max(region.until_ms, request.until_ms);
  region.incarnation = request.incarnation;
  region.state = RegionState::held;
  return grant(fleet, regions, request.region, request, clock_ms, true);
}

constexpr LeaseAnswer renew(FleetState& fleet, std::span<LeasedRegion> regions,
                            const LeaseRequest& request, int64_t clock_ms) noexcept {
  const LeasedRegion& region = regions[static_cast<size_t>(request.region)];
  // A renewal with an unknown nonce comes from a copy of the server's memory, such as a snapshot of
  // a virtual machine.
  const bool copied =
      request.acked != 0 && region.nonce != request.acked && region.nonce != request.nonce;
  if (!holds(region, request) || copied)
    return answer(fleet, request, AnswerStatus::lost, clock_ms);
  return grant(fleet, regions, request.region, request, clock_ms, false);
}

// Gives a region back. A lease server that was restored may have lost the lease of the region. In
// this case, giving the region back has no effect.
constexpr LeaseAnswer give_back(FleetState& fleet, LeasedRegion& region,
                                const LeaseRequest& request, int64_t clock_ms) noexcept {
  if (!holds(region, request) || region.grant != request.grant || request.grant > request.newest)
    return answer(fleet, request, AnswerStatus::lost, clock_ms);
  region.floor_ms = std::clamp(request.highest_ms, region.floor_ms, region.until_ms);
  region.until_ms = region.floor_ms;
  region.incarnation = 0;
  region.state = RegionState::given_back;
  return answer(fleet, request, AnswerStatus::given_back, clock_ms);
}

// Assigns regions to a server. Returns false if a region belongs to another server.
constexpr bool bind(std::span<LeasedRegion> regions, std::span<const int32_t> named,
                    int32_t server) noexcept {
  for (const int32_t i : named) {
    const int32_t owner = regions[static_cast<size_t>(i)].server;
    if (owner != -1 && owner != server) return false;
  }
  for (const int32_t i : named) regions[static_cast<size_t>(i)].server = server;
  return true;
}

// If the configuration of a server no longer contains a region, other servers may use the region
// after its lease has ended.
constexpr void release(std::span<LeasedRegion> regions, std::span<const int32_t> named,
                       int32_t server, int64_t earlier_ms) noexcept {
  for (int32_t i = 0; i < static_cast<int32_t>(regions.size()); ++i) {
    LeasedRegion& region = regions[static_cast<size_t>(i)];
    if (region.server == server && region.incarnation == 0 && free_from(region) <= earlier_ms &&
        std::find(named.begin(), named.end(), i) == named.end())
      region.server = -1;
  }
}

}  // namespace lease_detail

// Returns the number of the newest answer that the lease server has stored in `term`, a period
// between two recoveries of the lease server. If the recovery lost data (`lasting`), lost answers
// of earlier terms do not matter, because servers ignore answers of an earlier term.
constexpr int64_t known_number(const FleetState& fleet, int64_t term) noexcept {
  if (term == fleet.term) return fleet.newest;
  return term < fleet.lasting ? INT64_MAX : fleet.began;
}

// Stops all grants if the lease server was restored to an earlier state. A request reveals a
// restore if its answer number or its recovery number (term) is newer than the numbers that the
// lease server has stored.
constexpr void halt_if_behind(FleetState& fleet, const LeaseRequest& request) noexcept {
  if (request.term <= fleet.term &&
      (request.term == 0 || request.newest <= known_number(fleet, request.term)))
    return;
  fleet.reported_term = std::max(fleet.reported_term, request.term);
  fleet.halted = true;
}

// Answers a request. `own` contains the regions in the configuration of the requesting server.
// REQUIRES for renew and give_back: 0 <= request.region < regions.size().
constexpr LeaseAnswer decide(FleetState& fleet, std::span<LeasedRegion> regions,
                             std::span<const int32_t> own, const LeaseRequest& request,
                             int64_t clock_ms) noexcept {
  halt_if_behind(fleet, request);
  if (fleet.halted) return lease_detail::refusal(fleet, request, AnswerStatus::halted, clock_ms);

  const bool named = request.call != LeaseCall::acquire;
  const auto place = static_cast<size_t>(named ? request.region : 0);
  const bool renews = request.call == LeaseCall::renew;
  const bool held = renews && lease_detail::holds(regions[place], request);
  const bool adoptable =
      renews && request.term != 0 && lease_detail::may_adopt(fleet, regions[place], request);
  if (request.term != 0 && request.term < fleet.lasting && !held)
    return lease_detail::answer(fleet, request,
                                adoptable ? AnswerStatus::term_over : AnswerStatus::lost, clock_ms);
  // The lease server refuses a request if the server's clock is more than max_skew ahead of the
  // lease server's clock. If the clock in a request is behind, the request may just have taken
  // long, so the lease server accepts it. The requesting server checks its own clock when the
  // answer arrives.
  if (request.call != LeaseCall::give_back && request.clock_ms - clock_ms > fleet.skew_ms)
    return lease_detail::refusal(fleet, request, AnswerStatus::clock_ahead, clock_ms);
  if (request.call == LeaseCall::give_back)
    return lease_detail::give_back(fleet, regions[place], request, clock_ms);
  const std::span<const int32_t> asked =
      renews ? std::span<const int32_t>(&request.region, 1) : own;
  // Regions are first released and then bound, so that two servers can exchange their configured
  // regions.
  if (!renews)
    lease_detail::release(regions, own, request.server,
                          lease_detail::earlier_clock(request, clock_ms));
  if (!lease_detail::bind(regions, asked, request.server))
    return lease_detail::refusal(fleet, request, AnswerStatus::taken, clock_ms);
  fleet.newest_ms = std::max(fleet.newest_ms, lease_detail::earlier_clock(request, clock_ms));
  if (adoptable) return lease_detail::adopt(fleet, regions, request, clock_ms);
  if (renews) return lease_detail::renew(fleet, regions, request, clock_ms);
  return lease_detail::acquire(fleet, regions, own, request, clock_ms);
}

// Returns true if the lease server's clock is more than max_skew behind `newest_ms`, the time of
// the newest answer. If clock_is_behind() returns true, functions for administrators such as
// confirm_dead() raise an error.
constexpr bool clock_is_behind(const FleetState& fleet, int64_t now_ms) noexcept {
  return now_ms + fleet.skew_ms < fleet.newest_ms;
}

// Revokes a lease. The region of a revoked lease stays occupied until the end of the lease, because
// its holder may still mint ids.
constexpr void revoke(LeasedRegion& region) noexcept {
  region.incarnation = 0;
  region.state = RegionState::revoked;
}

// Ends the lease of a region if the servers that held the region have stopped. `ahead_ms` is the
// sum of "snowflake.max_lead" and "snowflake.reserve" on the servers. Ids can be ahead of a
// server's clock by at most `ahead_ms`. REQUIRES !clock_is_behind(). The servers that held the
// region must have stopped before `now_ms`, and their clocks must have been ahead by at most
// max_skew.
constexpr void confirm_dead(const FleetState& fleet, LeasedRegion& region, int64_t now_ms,
                            int64_t ahead_ms) noexcept {
  revoke(region);
  region.until_ms =
      std::max(region.floor_ms, std::min(region.until_ms, now_ms + ahead_ms + fleet.skew_ms));
}

// Begins a new term of the lease server. A term is the time between two recoveries of the lease
// server. A server that has received an answer of the new term ignores answers of lease servers
// with an earlier term.
constexpr void begin_term(FleetState& fleet, int64_t now_ms, int64_t salt) noexcept {
  fleet.term = std::max(term_at(now_ms, salt), std::max(fleet.term, fleet.reported_term) + 1);
  fleet.began = fleet.newest;
  fleet.halted = false;
}

// Continues all leases after a recovery of the lease server that lost no committed transaction.
// REQUIRES that the lease server is not halted, or that a wrong report of a newer lease has halted
// it.
constexpr void confirm_no_data_loss(FleetState& fleet, int64_t now_ms, int64_t salt) noexcept {
  begin_term(fleet, now_ms, salt);
}

// Lets the lease server grant leases again after a recovery that has lost data. New leases begin
// after the end of every lease that may have been lost. `silent` means that the lease server has
// granted no lease since it was restored. REQUIRES that the old lease server grants no lease after
// the call of confirm_data_loss(). The clock of the old lease server may be ahead of `now_ms` by up
// to max_skew.
constexpr void confirm_data_loss(FleetState& fleet, std::span<LeasedRegion> regions, int64_t now_ms,
                                 int64_t salt, bool silent) noexcept {
  for (LeasedRegion& region : regions) {
    if (region.state != RegionState::revoked) region.state = RegionState::lost;
    region.incarnation = 0;
    region.server = -1;
    region.until_ms =
        std::max({region.floor_ms, region.until_ms, now_ms + fleet.longest_ms + fleet.skew_ms});
  }
  begin_term(fleet, now_ms, salt);
  fleet.lasting = fleet.term;
  // `adopt_ms` adds max_skew twice, because two pairs of clocks may differ by up to max_skew. When
  // a lease was granted, the clocks of the server and of the old lease server may have differed.
  // The recovered lease server's clock (`now_ms`) may differ from the one of these two clocks that
  // is behind.
  fleet.adopt_ms = silent ? now_ms + 2 * fleet.skew_ms : 0;
  fleet.newest_ms = now_ms;
}

}  // namespace snowflake
