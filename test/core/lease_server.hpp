// Defines the answer of the lease server to each request, as a reference model.
//
// The shipped implementation is decide() in extensions/lease/src/sql/decide.sql. The random
// schedules of lease_model_test.cpp run this model. extensions/lease/t/021_transcription.pl
// compares the answers of this model with those of decide(), request by request.
//
// The caller must hold the lease server's lock. Each function reads the rows and the lease server's
// clock, and changes the rows. The caller then commits the rows, and sends the answer when the
// commit is durable.
//
// Invariants, per region:
//  1. A region is granted only to its own server.
//  2. `floor` and `until` only increase, and floor <= until. Exceptions: if a region is given back,
//     its `until` becomes the highest limit of its holder. If a holder is dead, `until` becomes its
//     clock plus lead and reserve. If a holder continues after a recovery, `floor` becomes that of
//     the holder again.
//  3. The `floor` of a new holder is at least the `until` or highest limit of every earlier holder.
//  4. `until` is at least the end of every grant, even of a lost one: see confirm_data_loss(). No
//     grant is longer than the longest grant.
#pragma once

#include <span>

#include "core/lease.hpp"

namespace snowflake {

enum class RegionState : uint8_t {
  given_back,  // the holder returned the region, or it was never granted
  held,
  revoked,  // by an operator
  lost,     // the grant may have been lost, but its holder may continue
};

struct LeasedRegion {
  int64_t floor_ms = 0;     // each id of the holder is at or after this time
  int64_t until_ms = 0;     // each id of the holder is before this time
  int64_t incarnation = 0;  // the holder, 0: none
  int64_t grant = 0;        // number of the last grant
  int64_t nonce = 0;        // of the holder's last request
  int32_t server = -1;      // the server of the region, or -1 before the first request
  RegionState state = RegionState::given_back;
};

struct FleetState {
  int64_t term;           // the time at which the fleet was made or last recovered: see term_at()
  int64_t newest;         // number of the newest answer
  int64_t newest_ms;      // the newest time that both the server and the lease server have reached
  int64_t longest_ms;     // the longest grant: lease plus lead
  int64_t skew_ms;        // the maximum difference between two clocks
  bool halted;            // true if rows are older than an answer: see confirm_data_loss()
  int64_t reported_term;  // the newest term that a server has named
  int64_t began;          // `newest` when the term began
  int64_t lasting;        // the oldest term whose leases continue
  int64_t adopt_ms;       // leases that end after this time continue, or none if 0
};

// Each term is greater than all earlier terms. A greater term shows that a grant of an earlier
// recovery, which the next recovery may have lost, is over. If two recoveries happen in the same
// millisecond, they differ by the salt of 20 bits.
constexpr int64_t term_at(int64_t now_ms, int64_t salt) noexcept {
  return now_ms << 20 | (salt & 0xfffff);
}

namespace lease_detail {

// Makes an answer that grants nothing. A refusal has no number.
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

// The earlier of two clocks decides whether a lease has ended and whether a region is free.
constexpr int64_t earlier_clock(const LeaseRequest& request, int64_t clock_ms) noexcept {
  return std::min(request.clock_ms, clock_ms);
}

// Grants a region. If the holder already has a longer lease, it keeps that lease.
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

// Returns the time from which the region may be granted. If a region was given back, its end may be
// ahead of the clock by its holder's reserve. If this end is further ahead, the holder's clock was
// wrong, and the region is not granted yet.
inline constexpr int64_t kGivenBackAheadMs = 10'000;
constexpr int64_t free_from(const LeasedRegion& region) noexcept {
  return region.state == RegionState::given_back ? region.until_ms - kGivenBackAheadMs
                                                 : region.until_ms;
}

// Chooses a free region of a server. If minting can continue at once in the region that was given
// back last, choose() returns this region. If minting would have to wait there, choose() returns
// the region that has been unused for the longest time.
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
  // A repeated request gets the same region, because the first answer may have been lost. The
  // repeated grant gets a new number. If the incarnation has sent a request to give the old grant
  // back, that request then has no effect.
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

// Returns true if a holder of a lease that was granted before a recovery may continue. A lease that
// ends after adopt_ms was the last lease of its region. The next holder of this region would begin
// at the end of that lease, which the clocks have not reached. The holder must renew in the term
// that began with the recovery. A renewal of an earlier term may be late, and the region may have
// been given back and granted again in the meantime. A lease that an operator has revoked does not
// continue.
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
  // Detects that a copy of the incarnation has renewed: the stored nonce is neither the
  // acknowledged nonce nor the nonce of this request. A copy of an incarnation comes from a memory
  // snapshot of the machine.
  const bool copied =
      request.acked != 0 && region.nonce != request.acked && region.nonce != request.nonce;
  if (!holds(region, request) || copied)
    return answer(fleet, request, AnswerStatus::lost, clock_ms);
  return grant(fleet, regions, request.region, request, clock_ms, false);
}

// Gives a region back. After a recovery the lease server uses the numbers of lost answers again. If
// the returned grant is newer than the newest answer of its holder in this term, the grant was
// lost. In this case the request has no effect.
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

// Assigns the regions that a request names to its server. Returns false if a region belongs to
// another server.
constexpr bool bind(std::span<LeasedRegion> regions, std::span<const int32_t> named,
                    int32_t server) noexcept {
  for (const int32_t i : named) {
    const int32_t owner = regions[static_cast<size_t>(i)].server;
    if (owner != -1 && owner != server) return false;
  }
  for (const int32_t i : named) regions[static_cast<size_t>(i)].server = server;
  return true;
}

// Makes regions that a server no longer names available to other servers after the leases of these
// regions have ended.
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

// Returns the newest number of a term, as far as the database has stored it. Lost answers of an
// earlier term do not matter.
constexpr int64_t known_number(const FleetState& fleet, int64_t term) noexcept {
  if (term == fleet.term) return fleet.newest;
  return term < fleet.lasting ? INT64_MAX : fleet.began;
}

// Stops all grants of the fleet if a server has a newer answer than this database. A newer answer
// shows that the lease server was restored to an earlier state.
constexpr void halt_if_behind(FleetState& fleet, const LeaseRequest& request) noexcept {
  if (request.term <= fleet.term &&
      (request.term == 0 || request.newest <= known_number(fleet, request.term)))
    return;
  fleet.reported_term = std::max(fleet.reported_term, request.term);
  fleet.halted = true;
}

// Answers a request. The argument `own` has the regions in the configuration of the requesting
// server. REQUIRES for renew and give_back: 0 <= request.region < regions.size().
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
  // This check detects only a clock that is ahead. A clock that seems to be behind may belong to a
  // slow request, so the server checks the clock when it receives the answer.
  if (request.call != LeaseCall::give_back && request.clock_ms - clock_ms > fleet.skew_ms)
    return lease_detail::refusal(fleet, request, AnswerStatus::clock_ahead, clock_ms);
  if (request.call == LeaseCall::give_back)
    return lease_detail::give_back(fleet, regions[place], request, clock_ms);
  const std::span<const int32_t> asked =
      renews ? std::span<const int32_t>(&request.region, 1) : own;
  // release() precedes bind(), so that two servers can exchange regions.
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

// Returns true if the lease server's clock is behind `newest_ms`. If the clock is behind,
// operators' calls fail.
constexpr bool clock_is_behind(const FleetState& fleet, int64_t now_ms) noexcept {
  return now_ms + fleet.skew_ms < fleet.newest_ms;
}

// Revokes the holder's lease. The region is not free before `until`, because the holder may still
// mint.
constexpr void revoke(LeasedRegion& region) noexcept {
  region.incarnation = 0;
  region.state = RegionState::revoked;
}

// Ends the lease of a region whose holders have stopped. The ids of the holders were ahead of their
// clocks by at most `ahead_ms`, which is lead plus reserve. REQUIRES: !clock_is_behind(); the
// holders stopped before `now_ms`; the holders' clocks were ahead by at most the skew.
constexpr void confirm_dead(const FleetState& fleet, LeasedRegion& region, int64_t now_ms,
                            int64_t ahead_ms) noexcept {
  revoke(region);
  region.until_ms =
      std::max(region.floor_ms, std::min(region.until_ms, now_ms + ahead_ms + fleet.skew_ms));
}

// Begins a term. A server that has received an answer of the new term ignores other copies of this
// database.
constexpr void begin_term(FleetState& fleet, int64_t now_ms, int64_t salt) noexcept {
  fleet.term = std::max(term_at(now_ms, salt), std::max(fleet.term, fleet.reported_term) + 1);
  fleet.began = fleet.newest;
  fleet.halted = false;
}

// Continues with all leases, because this database has every decision. REQUIRES !fleet.halted, or
// that a false request has halted the fleet.
constexpr void confirm_no_data_loss(FleetState& fleet, int64_t now_ms, int64_t salt) noexcept {
  begin_term(fleet, now_ms, salt);
}

// Continues after decisions were lost. Every region begins after all grants that may have been
// lost. The argument `silent` is true if this copy has granted nothing since it was restored.
// REQUIRES that `now_ms` is at most the skew before each lost grant.
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
  // A grant's two clocks may differ by the skew, and the earlier one may differ from `now_ms` by
  // the skew.
  fleet.adopt_ms = silent ? now_ms + 2 * fleet.skew_ms : 0;
  fleet.newest_ms = now_ms;
}

}  // namespace snowflake
