// Leased regions: the messages between a server and its lease server.
//
// Each server has regions of its own, which its configuration names. A lease fences the runs of
// that server against each other: its restarts, clones, standbys and restored copies. The holder
// issues no id of the region of a time before `floor`, nor of `until` or later, and the next holder
// begins at `until`. So the ids of two holders are disjoint, at any clock and with any
// holder that still runs. Clocks only decide how long a server waits. Times are milliseconds since
// 1970.
//
// lease_memory.hpp decides what a server does with an answer. The extension snowflake_fleet decides
// the answers; test/core/lease_control.hpp is the reference model of that.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <algorithm>
#include <cstdint>

#include "core/layout.hpp"

namespace snowflake {

inline constexpr int64_t kFirstGrantMs = 60'000;  // of a server that has just been started
inline constexpr int64_t kDefaultLeaseMs = 3'600'000;
inline constexpr int64_t kLongestLeaseMs = int64_t{7} * 86'400'000;

// No region; regions are numbered from 0.
inline constexpr int32_t kNoRegion = -1;

enum class LeaseCall : uint8_t {
  acquire,
  renew,
  give_back,
  report,  // from a server with a static region: it takes no lease
};

struct LeaseRequest {
  LeaseCall call;
  int32_t server;       // the login role that asks: the lease server goes by its own records
  int64_t incarnation;  // of a postmaster, drawn at random at its start; never 0
  int64_t term;         // of the newest answer that the server has, 0: it has none
  int64_t newest;       // that answer's number
  int64_t nonce;        // a new one after each grant, sent until a grant answers it
  int64_t acked;        // the nonce that was answered last, 0: this worker has had no grant yet
  int64_t clock_ms;     // the server's clock when it sends this
  int64_t length_ms;    // the longest grant that is asked for: lease and lead
  int64_t age_ms;       // of the incarnation
  int32_t region;       // renew and give_back: which
  int64_t floor_ms;     // renew: what is held, as it was granted
  int64_t until_ms;
  int64_t grant;       // give_back: the grant that is given back
  int64_t highest_ms;  // give_back: the highest limit, no id of it or later was issued
};

enum class AnswerStatus : uint8_t {
  granted,
  given_back,
  lost,         // revoked, or of an earlier term: the incarnation has ended
  full,         // no region of the server is free before `until_ms`
  halted,       // the lease server may have lost grants, and waits for an operator
  clock_ahead,  // the server's clock, by more than max_skew
  term_over,    // a renewal of a term that is over: send it again, in the term of this answer
  taken,        // a requested region belongs to another server
  registered,   // the answer to a report
};

struct LeaseAnswer {
  LeaseCall call;
  AnswerStatus status;
  int64_t incarnation;
  int64_t term;
  int64_t number;  // of the answer: rises within a term; 0 for a refusal
  int32_t region;
  int64_t grant;  // number of the answer that granted the region
  int64_t floor_ms;
  int64_t until_ms;
  int64_t clock_ms;  // the lease server's clock when it decided
};

// How long a grant lasts, of at most `longest_ms`: as long as the incarnation is old, and a minute
// at first.
constexpr int64_t grant_length(int64_t age_ms, int64_t longest_ms) noexcept {
  return std::min(std::max(age_ms, kFirstGrantMs), longest_ms);
}

// How long after an exchange the next one is due.
constexpr int64_t renew_after(int64_t length_ms) noexcept {
  return length_ms / 3;
}

// Returns how far the server's clock is certainly ahead of the lease server's, or behind it if
// negative. The answer's time lies between sending and receiving.
constexpr int64_t clocks_apart(int64_t sent_ms, int64_t control_ms, int64_t received_ms) noexcept {
  if (control_ms < sent_ms) return sent_ms - control_ms;
  if (control_ms > received_ms) return received_ms - control_ms;
  return 0;
}

// The time up to which ids may be issued: the smaller of mark and lease.
constexpr int64_t covered_until(int64_t mark_ms, int64_t until_ms) noexcept {
  return std::min(mark_ms, until_ms);
}

// Whether observe() may raise the mark to this time. Cut to the lease it would be forgotten by the
// next one, whose floor is lower.
constexpr bool may_be_observed(int64_t ms, int64_t until_ms) noexcept {
  return ms <= until_ms;
}

// The first position at or above a limit in time, and the first that a floor allows. If a time lies
// within a tick, neither side may use that tick.
constexpr uint64_t position_below(const Layout& layout, int64_t limit_ms) noexcept {
  if (limit_ms <= layout.epoch_ms) return 0;
  return layout.first_position(std::min(layout.tick_at(limit_ms), layout.last_minted_tick() + 1));
}
constexpr uint64_t position_from(const Layout& layout, int64_t floor_ms) noexcept {
  if (floor_ms <= layout.epoch_ms) return 0;
  return layout.first_position(std::min(layout.tick_from(floor_ms), layout.last_minted_tick() + 1));
}

// Returns the time to which the mark must be raised to cover `position`: a reserve beyond it, but
// not above the lease, so that a wrong clock does not spoil the mark. Returns 0 if the lease does
// not cover the position. The caller then waits for the lease, and does not write the mark.
constexpr int64_t mark_within_lease(const Layout& layout, uint64_t position, int64_t reserve_ms,
                                    int64_t until_ms) noexcept {
  if (position >= position_below(layout, until_ms)) return 0;
  const int64_t wanted = layout.ms_of_tick(layout.tick_of_position(position)) + reserve_ms;
  return std::min(wanted, until_ms);
}

}  // namespace snowflake
