// The control side of leases: what the fleet's control database decides.
//
// Every function takes the fleet under its one lock and the control database's clock, and leaves
// the rows as they are to be committed; an answer may be sent once the commit is durable.
//
// Invariants, per region:
//  1. floor and until only rise, and floor <= until. Exceptions: a region that is given back ends
//     at its holder's highest limit; a dead holder's, where its clock and reserve end; one whose
//     holder goes on after a recovery has that holder's floor again.
//  2. A new holder's floor is at least every earlier holder's until or highest limit.
//  3. until is at least what any holder was granted, also where the grant is lost: see recovered().
//     No holder is told more than the longest grant: the next recovery rests on that.
#pragma once

#include <span>

#include "core/lease.hpp"

namespace snowflake {

struct LeasedRegion {
  int64_t floor_ms;     // the holder issues nothing of an earlier time
  int64_t until_ms;     // nor of this time or later
  int64_t incarnation;  // the holder, 0: nobody
  int64_t grant;        // number of the last grant
  int64_t nonce;        // of the holder's last request
  int32_t server;       // the last holder's server, -1: none yet
  bool given_back;      // by that server, and not granted since
};

struct FleetState {
  int64_t term;         // when the fleet was made, or an operator last spoke: see term_at()
  int64_t newest;       // number of the newest answer
  int64_t longest_ms;   // no grant is longer: the longest lease and lead
  int64_t skew_ms;      // how far clocks may be apart
  bool halted;          // found to be behind: nothing is decided until recovered()
  int64_t heard_term;   // the newest term that a server has proven
  int64_t began;        // `newest` when the term began
  int64_t lasting;      // the oldest term whose leases go on
  int64_t lost_number;  // `newest` when that one began
  int64_t adopt_ms;     // of earlier leases those go on that end later; 0: none does
  int64_t ahead_ms;     // the most that any server issues ids ahead of its clock
};

// Terms are in the order in which they begin. So what an earlier recovery granted,
// of which the database may have been robbed by the next one, is known to be over; two recoveries
// in one instant differ by the salt, 20 random bits.
constexpr int64_t term_at(int64_t now_ms, int64_t salt) noexcept {
  return now_ms << 20 | (salt & 0xfffff);
}

namespace lease_detail {

// Decides nothing, and has no number.
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

// Regions that the server had and has left behind, or that clones of it hold.
constexpr int64_t left_behind(std::span<const LeasedRegion> regions, const LeaseRequest& request,
                              int64_t clock_ms) noexcept {
  return std::count_if(regions.begin(), regions.end(), [&](const LeasedRegion& region) {
    return region.server == request.server && region.incarnation != request.incarnation &&
           !region.given_back && region.until_ms > clock_ms;
  });
}

// Until when a request is granted its region. The earlier clock counts: a clock that is ahead makes
// nobody wait for it. A holder that has been granted more keeps that.
constexpr int64_t granted_until(const FleetState& fleet, std::span<const LeasedRegion> regions,
                                const LeaseRequest& request, int64_t floor_ms,
                                int64_t clock_ms) noexcept {
  const int64_t longest = std::clamp<int64_t>(request.length_ms, 0, fleet.longest_ms);
  const int64_t length =
      grant_length(request.age_ms, longest, left_behind(regions, request, clock_ms));
  return std::max(floor_ms, std::min(request.clock_ms, clock_ms) + length);
}

constexpr LeaseAnswer grant(FleetState& fleet, std::span<LeasedRegion> regions, int32_t number,
                            const LeaseRequest& request, int64_t clock_ms, bool anew) noexcept {
  LeasedRegion& region = regions[static_cast<size_t>(number)];
  LeaseAnswer result = answer(fleet, request, AnswerStatus::granted, clock_ms);
  result.until_ms = granted_until(fleet, regions, request, region.floor_ms, clock_ms);
  region.until_ms = std::max(region.until_ms, result.until_ms);
  region.nonce = request.nonce;
  if (anew) region.grant = result.number;
  result.region = number;
  result.grant = region.grant;
  result.floor_ms = region.floor_ms;
  return result;
}

// From when on the region may be granted. One that was given back may be ahead of the clock by its
// holder's reserve; if it is by more, its holder's clock was wrong, and it is left alone.
inline constexpr int64_t kGivenBackAheadMs = 10'000;
constexpr int64_t free_from(const LeasedRegion& region) noexcept {
  return region.given_back ? region.until_ms - kGivenBackAheadMs : region.until_ms;
}

// The free region for a server: the one that it gave back last, if its ids can go on at once; else
// the one that has been unused for longest.
constexpr int32_t choose(std::span<const LeasedRegion> regions, const LeaseRequest& request,
                         int64_t clock_ms) noexcept {
  const int64_t earlier = std::min(request.clock_ms, clock_ms);
  int32_t own = kNoRegion;
  int32_t oldest = kNoRegion;
  for (int32_t i = 0; i < static_cast<int32_t>(regions.size()); ++i) {
    const LeasedRegion& region = regions[static_cast<size_t>(i)];
    if (free_from(region) > clock_ms) continue;
    if (region.given_back && region.server == request.server && region.until_ms <= earlier &&
        (own == kNoRegion || region.grant > regions[static_cast<size_t>(own)].grant))
      own = i;
    if (oldest == kNoRegion || region.until_ms < regions[static_cast<size_t>(oldest)].until_ms)
      oldest = i;
  }
  return own != kNoRegion ? own : oldest;
}

constexpr bool holds(const LeasedRegion& region, const LeaseRequest& request) noexcept {
  return region.incarnation != 0 && region.incarnation == request.incarnation &&
         region.server == request.server;
}

constexpr int32_t held_by(std::span<const LeasedRegion> regions,
                          const LeaseRequest& request) noexcept {
  for (int32_t i = 0; i < static_cast<int32_t>(regions.size()); ++i)
    if (holds(regions[static_cast<size_t>(i)], request)) return i;
  return kNoRegion;
}

constexpr LeaseAnswer acquire(FleetState& fleet, std::span<LeasedRegion> regions,
                              const LeaseRequest& request, int64_t clock_ms) noexcept {
  // Asked again, as the first answer may have been lost: the same region. The grant is a new one,
  // so that what the incarnation may have sent to give the old one back has no effect.
  int32_t number = held_by(regions, request);
  if (number != kNoRegion) return grant(fleet, regions, number, request, clock_ms, true);

  number = choose(regions, request, clock_ms);
  if (number == kNoRegion) {
    LeaseAnswer full = answer(fleet, request, AnswerStatus::full, clock_ms);
    for (const LeasedRegion& region : regions)
      if (full.until_ms == 0 || free_from(region) < full.until_ms)
        full.until_ms = free_from(region);
    return full;
  }
  LeasedRegion& region = regions[static_cast<size_t>(number)];
  region.floor_ms = region.until_ms = std::max(region.floor_ms, region.until_ms);
  region.incarnation = request.incarnation;
  region.server = request.server;
  region.given_back = false;
  return grant(fleet, regions, number, request, clock_ms, true);
}

// After a recovery that ended all leases: may the holder of before go on? A signed lease that ends
// so late, and that its holder has not given back, was the last one of its region, whatever is
// lost: the next holder would have been given the region at or after its end, and no clock said so
// yet. Nobody else has a later time of it either, as all floors are beyond everything that was
// granted; the region's end stays there too, and the holder is told his own. Not where the database
// may have granted something between being recovered and saying so: that could be the same region.
// Who holds it still, says so in a term that began with the recovery: a renewal of an earlier one
// may have been on its way for long, and its region given back and granted to somebody since.
constexpr bool may_adopt(const FleetState& fleet, const LeasedRegion& region,
                         const LeaseRequest& request) noexcept {
  return request.titled && fleet.adopt_ms != 0 && request.until_ms > fleet.adopt_ms &&
         region.incarnation == 0 && region.grant <= fleet.lost_number;
}

constexpr LeaseAnswer adopt(FleetState& fleet, std::span<LeasedRegion> regions,
                            const LeaseRequest& request, int64_t clock_ms) noexcept {
  LeasedRegion& region = regions[static_cast<size_t>(request.region)];
  region.floor_ms = request.floor_ms;
  region.until_ms = std::max(region.until_ms, request.until_ms);
  region.incarnation = request.incarnation;
  region.server = request.server;
  region.given_back = false;
  return grant(fleet, regions, request.region, request, clock_ms, true);
}

constexpr LeaseAnswer renew(FleetState& fleet, std::span<LeasedRegion> regions,
                            const LeaseRequest& request, int64_t clock_ms) noexcept {
  const LeasedRegion& region = regions[static_cast<size_t>(request.region)];
  // A nonce that is neither the last one answered nor the one now sent is somebody else's: a copy
  // of this very incarnation, out of a memory snapshot of its machine, has renewed in between.
  const bool copied =
      request.acked != 0 && region.nonce != request.acked && region.nonce != request.nonce;
  if (!holds(region, request) || copied)
    return answer(fleet, request, AnswerStatus::lost, clock_ms);
  return grant(fleet, regions, request.region, request, clock_ms, false);
}

// Numbers begin again where a recovery lost some: a grant that is newer than all that its holder
// had heard in this term was lost, and may share its number with one that is on its way to him.
constexpr LeaseAnswer give_back(FleetState& fleet, LeasedRegion& region,
                                const LeaseRequest& request, int64_t clock_ms) noexcept {
  if (!holds(region, request) || region.grant != request.grant || request.grant > request.newest)
    return answer(fleet, request, AnswerStatus::lost, clock_ms);
  region.floor_ms = std::clamp(request.highest_ms, region.floor_ms, region.until_ms);
  region.until_ms = region.floor_ms;
  region.incarnation = 0;
  region.given_back = true;
  return answer(fleet, request, AnswerStatus::given_back, clock_ms);
}

}  // namespace lease_detail

// The newest number that the database has given in a term, as far as it remembers. What it lost
// with a term that is over does not matter any more.
constexpr int64_t known_number(const FleetState& fleet, int64_t term) noexcept {
  if (term == fleet.term) return fleet.newest;
  return term < fleet.lasting ? INT64_MAX : fleet.began;
}

// A server that has heard more than was ever said here shows that the control database was
// recovered to an earlier state. Nobody, also no server that comes new, may be told anything by it
// then. Returns false where the server only says so.
constexpr bool notice(FleetState& fleet, const LeaseRequest& request) noexcept {
  if (request.term <= fleet.term &&
      (request.term == 0 || request.newest <= known_number(fleet, request.term)))
    return true;
  if (!request.proven) return false;
  fleet.heard_term = std::max(fleet.heard_term, request.term);
  fleet.halted = true;
  return true;
}

// Answers a request. REQUIRES for renew and give_back: 0 <= request.region < regions.size().
constexpr LeaseAnswer decide(FleetState& fleet, std::span<LeasedRegion> regions,
                             const LeaseRequest& request, int64_t clock_ms) noexcept {
  if (!notice(fleet, request))
    return lease_detail::refusal(fleet, request, AnswerStatus::unproven, clock_ms);
  if (fleet.halted) return lease_detail::refusal(fleet, request, AnswerStatus::halted, clock_ms);

  const bool held = request.call == LeaseCall::renew &&
                    lease_detail::holds(regions[static_cast<size_t>(request.region)], request);
  const bool adoptable =
      request.call == LeaseCall::renew && request.term != 0 &&
      lease_detail::may_adopt(fleet, regions[static_cast<size_t>(request.region)], request);
  if (request.term != 0 && request.term < fleet.lasting && !held)
    return lease_detail::answer(fleet, request,
                                adoptable ? AnswerStatus::term_over : AnswerStatus::lost, clock_ms);
  // That it is behind can only be told when the answer arrives: the request may have taken long.
  if (request.call != LeaseCall::give_back && request.clock_ms - clock_ms > fleet.skew_ms)
    return lease_detail::refusal(fleet, request, AnswerStatus::clock_ahead, clock_ms);
  fleet.ahead_ms = std::max(fleet.ahead_ms, request.ahead_ms);
  if (adoptable) return lease_detail::adopt(fleet, regions, request, clock_ms);
  if (request.call == LeaseCall::acquire)
    return lease_detail::acquire(fleet, regions, request, clock_ms);
  if (request.call == LeaseCall::renew)
    return lease_detail::renew(fleet, regions, request, clock_ms);
  return lease_detail::give_back(fleet, regions[static_cast<size_t>(request.region)], request,
                                 clock_ms);
}

// Ends the holder's lease. Nobody else gets the region before `until`: who was evicted may not
// know.
constexpr void evict(LeasedRegion& region) noexcept {
  region.incarnation = 0;
  region.given_back = false;
}

// Whether a recovery may have lost what the region's last holder said: how far it was ahead.
constexpr bool ahead_forgotten(const FleetState& fleet, const LeasedRegion& region) noexcept {
  return region.grant <= fleet.lost_number;
}

// Ends the lease of a region whose holders are known to have stopped, none of them with a clock
// that was ahead by more than clocks may be: what they have issued was never further ahead of it
// than lead and reserve. `ahead_ms` is the operator's word for these. REQUIRES it where
// ahead_forgotten(), and that the holders stopped before `now_ms`.
constexpr void end_dead(const FleetState& fleet, LeasedRegion& region, int64_t now_ms,
                        int64_t ahead_ms) noexcept {
  evict(region);
  const int64_t furthest = now_ms + std::max(fleet.ahead_ms, ahead_ms) + fleet.skew_ms;
  region.until_ms = std::max(region.floor_ms, std::min(region.until_ms, furthest));
}

// A new term: answers of another copy of this database are old to every server that has heard of
// it.
constexpr void begin_term(FleetState& fleet, int64_t now_ms, int64_t salt) noexcept {
  fleet.term = std::max(term_at(now_ms, salt), std::max(fleet.term, fleet.heard_term) + 1);
  fleet.began = fleet.newest;
  fleet.halted = false;
}

// Everything that was decided is known: leases go on. REQUIRES !fleet.halted.
constexpr void nothing_lost(FleetState& fleet, int64_t now_ms, int64_t salt) noexcept {
  begin_term(fleet, now_ms, salt);
}

// Decisions made after the moment that the control database was recovered to are lost: regions
// begin above all that may have been granted. `silent`: this copy has granted nothing since.
// REQUIRES that `now_ms` is not before any of those grants by more than the clocks may be apart.
constexpr void recovered(FleetState& fleet, std::span<LeasedRegion> regions, int64_t now_ms,
                         int64_t salt, bool silent) noexcept {
  for (LeasedRegion& region : regions) {
    evict(region);
    region.until_ms =
        std::max({region.floor_ms, region.until_ms, now_ms + fleet.longest_ms + fleet.skew_ms});
  }
  begin_term(fleet, now_ms, salt);
  fleet.lasting = fleet.term;
  fleet.lost_number = fleet.newest;
  // Both clocks of a grant may be apart, and the earlier one that of `now_ms`.
  fleet.adopt_ms = silent ? now_ms + 2 * fleet.skew_ms : 0;
}

}  // namespace snowflake
