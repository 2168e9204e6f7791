// Leased regions: the messages between a server that mints and its lease server.
//
// The configuration of each server names the server's regions, and no other server uses these
// regions. A lease separates the runs of one server: restarts, clones, standbys and restored
// copies. The times of a lease holder's ids are at or after `floor` and before `until`, and the
// next holder begins at `until`. So two holders never issue the same id, although a clock may be
// wrong or an earlier holder may still run. In the lease protocol, clocks only decide how long a
// server waits. Times are milliseconds since 1970.
//
// lease_memory.hpp decides what a server does with an answer. The extension snowflake_fleet decides
// the answers, and test/core/lease_server.hpp is the reference model of the extension.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <cstdint>

#include "core/layout.hpp"

namespace snowflake {

inline constexpr int64_t kFirstGrantMs = 60'000;  // the first lease of a new server run
inline constexpr int64_t kDefaultLeaseMs = 3'600'000;
inline constexpr int64_t kLongestLeaseMs = int64_t{7} * 86'400'000;

// No region; regions are numbered from 0.
inline constexpr int32_t kNoRegion = -1;

enum class LeaseCall : uint8_t {
  acquire,
  renew,
  give_back,
  report,  // from a server with a static region, which needs no lease
};

struct LeaseRequest {
  LeaseCall call;
  int32_t server;       // unused: the lease server identifies a server by its login role
  int64_t incarnation;  // random, not 0, drawn when the postmaster starts
  int64_t term;         // the term of the newest answer that the server received; 0: none yet
  int64_t newest;       // the number of that answer
  int64_t nonce;        // a random number, which changes after each grant
  int64_t acked;        // the worker's last granted nonce; 0: no grant yet
  int64_t clock_ms;     // the server's clock when the server sends the request
  int64_t length_ms;    // the longest grant that the server requests: snowflake.lease + max_lead
  int64_t age_ms;       // the age of the incarnation
  int32_t region;       // renew and give_back: the region
  int64_t floor_ms;     // renew: the start of the held lease
  int64_t until_ms;
  int64_t grant;       // give_back: the grant that the server gives back
  int64_t highest_ms;  // give_back: the highest limit; all issued ids have earlier times
};

enum class AnswerStatus : uint8_t {
  granted,
  given_back,
  lost,         // the lease was revoked, or is of an earlier term: the incarnation has ended
  full,         // all regions of the server are in use until `until_ms`
  halted,       // the lease server may have lost grants, and an operator must act
  clock_ahead,  // the server's clock is ahead by more than max_skew
  term_over,    // the renewal's term has ended: send again with the answer's term
  taken,        // a requested region belongs to another server
  registered,   // the answer to a report
};

struct LeaseAnswer {
  LeaseCall call;
  AnswerStatus status;
  int64_t incarnation;
  int64_t term;
  int64_t number;  // the number of the answer in the term; 0: the answer is a refusal
  int32_t region;
  int64_t grant;  // number of the answer that granted the region
  int64_t floor_ms;
  int64_t until_ms;
  int64_t clock_ms;  // the lease server's clock when the lease server decided
};

// The length of a grant is the age of the incarnation, but at least a minute and at most
// `longest_ms`.
constexpr int64_t grant_length(int64_t age_ms, int64_t longest_ms) noexcept {
  return std::min(std::max(age_ms, kFirstGrantMs), longest_ms);
}

// The time from a successful request to the next renewal.
constexpr int64_t renew_after(int64_t length_ms) noexcept {
  return length_ms / 3;
}

// Returns a lower bound of the time by which the server's clock is ahead of the lease server's
// clock. The result is negative if the server's clock is behind the lease server's clock. The lease
// server read its clock between `sent_ms` and `received_ms`.
constexpr int64_t clocks_apart(int64_t sent_ms, int64_t lease_server_ms,
                               int64_t received_ms) noexcept {
  if (lease_server_ms < sent_ms) return sent_ms - lease_server_ms;
  if (lease_server_ms > received_ms) return received_ms - lease_server_ms;
  return 0;
}

// The time up to which ids may be issued: the smaller of mark and lease.
constexpr int64_t covered_until(int64_t mark_ms, int64_t until_ms) noexcept {
  return std::min(mark_ms, until_ms);
}

// Returns whether observe() may raise the mark to a time. observe() refuses a later time. If the
// mark were limited to the end of the lease, ids of the next lease could be less than the observed
// id.
constexpr bool may_be_observed(int64_t ms, int64_t until_ms) noexcept {
  return ms <= until_ms;
}

// position_below() is the first position that a limit forbids. position_from() is the first
// position that a floor allows. If the time is in the middle of a tick, position_below() and
// position_from() forbid the whole tick.
constexpr uint64_t position_below(const Layout& layout, int64_t limit_ms) noexcept {
  if (limit_ms <= layout.epoch_ms) return 0;
  return layout.first_position(std::min(layout.tick_at(limit_ms), layout.last_minted_tick() + 1));
}
constexpr uint64_t position_from(const Layout& layout, int64_t floor_ms) noexcept {
  if (floor_ms <= layout.epoch_ms) return 0;
  return layout.first_position(std::min(layout.tick_from(floor_ms), layout.last_minted_tick() + 1));
}

// Returns the time to which the mark must be raised for `position`. The returned time includes the
// reserve. The returned time is not after the end of the lease, so that a wrong clock cannot raise
// the mark too far. Returns 0 if the lease does not cover the position. If the result is 0, the
// caller waits for the lease and does not write the mark.
constexpr int64_t mark_within_lease(const Layout& layout, uint64_t position, int64_t reserve_ms,
                                    int64_t until_ms) noexcept {
  if (position >= position_below(layout, until_ms)) return 0;
  const int64_t wanted = layout.ms_of_tick(layout.tick_of_position(position)) + reserve_ms;
  return std::min(wanted, until_ms);
}

}  // namespace snowflake
