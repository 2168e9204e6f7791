// The messages between a server that mints ids and the lease server. The lease server grants a
// region (number in ids) to a server for a limited time.
//
// Each server is configured with regions that no other server uses. Leases prevent two runs of one
// server (restart, clone, standby, restored copy) from minting the same ids. A server with a lease
// mints ids with times from `floor` up to, but not including, `until`. The ids of the next server
// with a lease on the region begin at `until`. Two server runs that lease a region one after the
// other never mint the same id. A wrong clock, or an earlier server run that still mints, cannot
// cause equal ids. A wrong clock of a server can only change how long the server waits for its
// lease. All times in the messages are in ms since 1970.
//
// The extension snowflake_fleet implements the lease server. The file test/core/lease_server.hpp is
// a model of the lease server for tests.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <cstdint>

#include "core/layout.hpp"

namespace snowflake {

inline constexpr int64_t kFirstGrantMs = 60'000;  // length of the first lease of a server run
inline constexpr int64_t kDefaultLeaseMs = 3'600'000;
inline constexpr int64_t kLongestLeaseMs = int64_t{7} * 86'400'000;

// The value kNoRegion (-1) means "without a region". Regions are numbered from 0.
inline constexpr int32_t kNoRegion = -1;

enum class LeaseCall : uint8_t {
  acquire,
  renew,
  give_back,
  report,  // a server without leases sends the number of its region
};

struct LeaseRequest {
  LeaseCall call;
  int32_t server;       // unused, because the lease server identifies a server by its login role
  int64_t incarnation;  // a random number that identifies the server run, not 0
  int64_t term;         // the term (period of the lease server) of the newest answer; 0: none
  int64_t newest;       // number of the newest answer
  int64_t nonce;        // a random number (nonce), which changes after each granted request
  int64_t acked;        // the nonce of the last granted request; 0: none
  int64_t clock_ms;     // the clock of the sender
  int64_t length_ms;    // the requested duration of the lease: snowflake.lease + max_lead
  int64_t age_ms;       // the age of the incarnation
  int32_t region;       // only for renew and give_back
  int64_t floor_ms;     // for renew: the start of the lease
  int64_t until_ms;
  int64_t grant;       // for give_back: identifies the returned lease (value of LeaseAnswer::grant)
  int64_t highest_ms;  // for give_back: a time after all ids that the server has issued
};

enum class AnswerStatus : uint8_t {
  granted,
  given_back,
  lost,         // the lease was revoked, or belongs to an earlier term
  full,         // no free region until `until_ms`
  halted,       // the lease server may have lost grants, so an operator must act
  clock_ahead,  // the server's clock is ahead by more than max_skew
  term_over,    // after a restore of the lease server: repeat the request with LeaseAnswer::term
  taken,        // the region belongs to another server
  registered,   // the answer to a report
};

struct LeaseAnswer {
  LeaseCall call;
  AnswerStatus status;
  int64_t incarnation;
  int64_t term;
  int64_t number;  // number of the answer, ascending within a term (period); 0: request refused
  int32_t region;
  int64_t grant;  // LeaseAnswer::number of the answer that granted the lease
  int64_t floor_ms;
  int64_t until_ms;
  int64_t clock_ms;  // the clock of the lease server
};

// A new lease lasts as long as the server has already run, but at least a minute and at most
// `longest_ms`.
constexpr int64_t grant_length(int64_t age_ms, int64_t longest_ms) noexcept {
  return std::min(std::max(age_ms, kFirstGrantMs), longest_ms);
}

constexpr int64_t renew_after(int64_t length_ms) noexcept {
  return length_ms / 3;
}

// Returns the least possible difference between the server's clock and the lease server's clock, in
// ms. The function clocks_apart() returns a negative difference if the server's clock is behind the
// lease server's clock. The lease server read its clock between the times `sent_ms` and
// `received_ms` of this server's clock.
constexpr int64_t clocks_apart(int64_t sent_ms, int64_t lease_server_ms,
                               int64_t received_ms) noexcept {
  if (lease_server_ms < sent_ms) return sent_ms - lease_server_ms;
  if (lease_server_ms > received_ms) return received_ms - lease_server_ms;
  return 0;
}

// The time of an issued id must be before both the high-water mark and the end of the lease.
constexpr int64_t covered_until(int64_t mark_ms, int64_t until_ms) noexcept {
  return std::min(mark_ms, until_ms);
}

// True if observe() may raise the high-water mark to the time `ms`. The high-water mark of a server
// with leases cannot be later than the end of the lease. For an id after the end of the lease,
// observe() fails, because ids of the next lease could be less than the observed id.
constexpr bool may_be_observed(int64_t ms, int64_t until_ms) noexcept {
  return ms <= until_ms;
}

// The function position_below() returns the first position (tick and sequence number) that a time
// limit forbids. The function position_from() returns the first position (tick and sequence number)
// that is not before the time `floor_ms`. If the time limit or `floor_ms` is in the middle of a
// tick (time unit), no id of the tick may be minted.
constexpr uint64_t position_below(const Layout& layout, int64_t limit_ms) noexcept {
  if (limit_ms <= layout.epoch_ms) return 0;
  return layout.first_position(std::min(layout.tick_at(limit_ms), layout.last_minted_tick() + 1));
}
constexpr uint64_t position_from(const Layout& layout, int64_t floor_ms) noexcept {
  if (floor_ms <= layout.epoch_ms) return 0;
  return layout.first_position(std::min(layout.tick_from(floor_ms), layout.last_minted_tick() + 1));
}

// Returns the time to which the high-water mark must be raised before the id at `position` can be
// minted. The returned time is `reserve_ms` (setting "snowflake.reserve") after the time in the id,
// but at most the end of the lease. A wrong clock thus cannot raise the high-water mark beyond the
// end of the lease. Returns 0 if `position` is not before the end of the lease. The caller must
// wait until the lease is extended if mark_within_lease() returns 0.
constexpr int64_t mark_within_lease(const Layout& layout, uint64_t position, int64_t reserve_ms,
                                    int64_t until_ms) noexcept {
  if (position >= position_below(layout, until_ms)) return 0;
  const int64_t wanted = layout.ms_of_tick(layout.tick_of_position(position)) + reserve_ms;
  return std::min(wanted, until_ms);
}

}  // namespace snowflake
