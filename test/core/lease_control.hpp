// The reference model of the lease server: what it has to answer.
//
// What ships is decide() in extensions/lease/parts/leases.sql. The random schedules of
// lease_model_test.cpp are shown for this text, and extensions/lease/t/021_transcription.pl
// compares the two request by request.
//
// Every function takes the rows under the lease server's one lock and its clock, and leaves the
// rows as they are to be committed. An answer may be sent once the commit is durable.
//
// Invariants, per region:
//  1. A region is granted to its own server only, whatever was forgotten.
//  2. floor and until only rise, and floor <= until. Exceptions: a region that is given back ends
//     at its holder's highest limit; a dead holder's, where its clock and reserve end; one whose
//     holder continues after a recovery has that holder's floor again.
//  3. A new holder's floor is at least every earlier holder's until or highest limit.
//  4. until is at least what any holder was granted, also if the grant is lost: see
//     confirm_data_loss(). No holder is told more than the longest grant.
#pragma once

#include <span>

#include "core/lease.hpp"

namespace snowflake {

enum class RegionState : uint8_t {
  given_back,  // by its holder; also before the first grant
  held,
  revoked,  // by an operator
  lost,     // grants may have been lost; its holder may continue
};

struct LeasedRegion {
  int64_t floor_ms = 0;     // the holder issues nothing of an earlier time
  int64_t until_ms = 0;     // nor of this time or later
  int64_t incarnation = 0;  // the holder, 0: nobody
  int64_t grant = 0;        // number of the last grant
  int64_t nonce = 0;        // of the holder's last request
  int32_t server = -1;      // whose region it is, -1: nobody has asked for it
  RegionState state = RegionState::given_back;
};

struct FleetState {
  int64_t term;           // when the fleet was made, or an operator last confirmed: see term_at()
  int64_t newest;         // number of the newest answer
  int64_t newest_ms;      // the newest time on which both clocks of an exchange agreed
  int64_t longest_ms;     // no grant is longer: the longest lease and lead
  int64_t skew_ms;        // how far clocks may be apart
  bool halted;            // found to be behind: nothing is decided until confirm_data_loss()
  int64_t reported_term;  // the newest term that a server has named
  int64_t began;          // `newest` when the term began
  int64_t lasting;        // the oldest term whose leases continue
  int64_t adopt_ms;       // holders of earlier leases continue that end later; 0: none does
};

// Terms are in the order in which they begin. So what an earlier recovery granted, and the next one
// may have lost, is known to be over. Two recoveries in one instant differ by the salt, 20 bits.
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

// The rule for clocks: whatever ends or frees something takes the earlier of both.
constexpr int64_t earlier_clock(const LeaseRequest& request, int64_t clock_ms) noexcept {
  return std::min(request.clock_ms, clock_ms);
}

// A holder that has been granted more keeps that.
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

// From when on the region may be granted. One that was given back may be ahead of the clock by its
// holder's reserve; if it is by more, its holder's clock was wrong, and it is left alone.
inline constexpr int64_t kGivenBackAheadMs = 10'000;
constexpr int64_t free_from(const LeasedRegion& region) noexcept {
  return region.state == RegionState::given_back ? region.until_ms - kGivenBackAheadMs
                                                 : region.until_ms;
}

// The free region of a server: the one that it gave back last, if its ids continue at once; else
// the one that has been unused for longest.
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
  // Asked again, as the first answer may have been lost: the same region. The grant is a new one,
  // so that what the incarnation may have sent to give the old one back has no effect.
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

// After a recovery: may the holder of before continue? A lease that ends so late was the last one
// of its region, whatever was lost: the next holder would have been given the region at or after
// its end, and no two clocks have shown that yet. Who holds it still, says so in a term that began
// with the recovery: a renewal of an earlier one may have been on its way for long, and its region
// given back and granted since. Not if an operator has revoked it.
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
  // A nonce that is neither the last one answered nor the one now sent is another's: a copy of this
  // very incarnation, out of a memory snapshot of its machine, has renewed in between.
  const bool copied =
      request.acked != 0 && region.nonce != request.acked && region.nonce != request.nonce;
  if (!holds(region, request) || copied)
    return answer(fleet, request, AnswerStatus::lost, clock_ms);
  return grant(fleet, regions, request.region, request, clock_ms, false);
}

// Numbers begin again after a recovery that lost some: a grant that is newer than all that its
// holder had heard in this term was lost, and may share its number with one that is on its way.
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

// A request binds the regions that it names to its server. False if one is another server's.
constexpr bool bind(std::span<LeasedRegion> regions, std::span<const int32_t> named,
                    int32_t server) noexcept {
  for (const int32_t i : named) {
    const int32_t owner = regions[static_cast<size_t>(i)].server;
    if (owner != -1 && owner != server) return false;
  }
  for (const int32_t i : named) regions[static_cast<size_t>(i)].server = server;
  return true;
}

// Regions that a server does not name any more are free for others, once its leases have ended.
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

// The newest number that was given in a term, as far as it is remembered. What was lost with a term
// that is over does not matter any more.
constexpr int64_t known_number(const FleetState& fleet, int64_t term) noexcept {
  if (term == fleet.term) return fleet.newest;
  return term < fleet.lasting ? INT64_MAX : fleet.began;
}

// A server that has heard more than was ever said here shows that the lease server was put back to
// an earlier state. It tells nobody anything then, also no server that is new.
constexpr void halt_if_behind(FleetState& fleet, const LeaseRequest& request) noexcept {
  if (request.term <= fleet.term &&
      (request.term == 0 || request.newest <= known_number(fleet, request.term)))
    return;
  fleet.reported_term = std::max(fleet.reported_term, request.term);
  fleet.halted = true;
}

// Answers a request. `own`: the regions in the configuration of the server that asks. REQUIRES for
// renew and give_back: 0 <= request.region < regions.size().
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
  // That it is behind can only be told when the answer arrives: the request may have taken long.
  if (request.call != LeaseCall::give_back && request.clock_ms - clock_ms > fleet.skew_ms)
    return lease_detail::refusal(fleet, request, AnswerStatus::clock_ahead, clock_ms);
  if (request.call == LeaseCall::give_back)
    return lease_detail::give_back(fleet, regions[place], request, clock_ms);
  const std::span<const int32_t> asked =
      renews ? std::span<const int32_t>(&request.region, 1) : own;
  // First, so that two servers can exchange regions.
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

// No operator's call goes before the newest time that two clocks have shown.
constexpr bool clock_is_behind(const FleetState& fleet, int64_t now_ms) noexcept {
  return now_ms + fleet.skew_ms < fleet.newest_ms;
}

// Ends the holder's lease. Nobody else gets the region before `until`: the holder may not know.
constexpr void revoke(LeasedRegion& region) noexcept {
  region.incarnation = 0;
  region.state = RegionState::revoked;
}

// Ends the lease of a region whose holders are known to have stopped, none of them with a clock
// that was ahead by more than clocks may be: what they have issued was never further ahead of it
// than lead and reserve, `ahead_ms` together. REQUIRES !clock_is_behind(), and that the holders
// stopped before `now_ms`.
constexpr void confirm_dead(const FleetState& fleet, LeasedRegion& region, int64_t now_ms,
                            int64_t ahead_ms) noexcept {
  revoke(region);
  region.until_ms =
      std::max(region.floor_ms, std::min(region.until_ms, now_ms + ahead_ms + fleet.skew_ms));
}

// A new term: answers of another copy of this database are old to every server that has heard it.
constexpr void begin_term(FleetState& fleet, int64_t now_ms, int64_t salt) noexcept {
  fleet.term = std::max(term_at(now_ms, salt), std::max(fleet.term, fleet.reported_term) + 1);
  fleet.began = fleet.newest;
  fleet.halted = false;
}

// Everything that was decided is known: leases continue. REQUIRES !fleet.halted, or that the claim
// which halted the fleet is false.
constexpr void confirm_no_data_loss(FleetState& fleet, int64_t now_ms, int64_t salt) noexcept {
  begin_term(fleet, now_ms, salt);
}

// Decisions made after the moment to which the lease server was put back are lost: regions begin
// above all that may have been granted. `silent`: this copy has granted nothing since. REQUIRES
// that `now_ms` is not before any of those grants by more than the clocks may be apart.
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
  // Both clocks of a grant may be apart, and the earlier one that of `now_ms`.
  fleet.adopt_ms = silent ? now_ms + 2 * fleet.skew_ms : 0;
  fleet.newest_ms = now_ms;
}

}  // namespace snowflake
