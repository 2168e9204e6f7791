// The lease state of a server contains the granted region and times, and a number that identifies
// the server run (incarnation).
//
// The lease state is in the postmaster's memory, and survives a crash of a backend. After a
// restart, in a clone and in a promoted standby, the lease state is empty. Only the lease worker
// writes the lease state, except the member `highest`. A session raises `highest` (the time up to
// which ids may be minted) by calling cover() under the server-wide lock (limits.hpp). The region
// is stored last and cleared first in the lease state, because a process may be killed between two
// stores. The other members of the lease state are valid only while a region is set.
//
// Invariants:
//
//  1. While the server holds a region, its databases mint ids only with times up to `highest`. The
//     time `highest` is not before the start (`floor`) and not after the end (`until`) of the
//     lease.
//
//  2. A server takes a region only if it holds no region and is not giving one back.
#pragma once

#include <atomic>

#include "core/lease.hpp"

namespace snowflake {

// A copy of the lease state of this server. A session must hold the server-wide lock (limits.hpp)
// to read the lease state. The lease worker reads the lease state without a lock.
struct LeaseView {
  int64_t incarnation;
  int64_t term;
  int64_t newest;
  int32_t region;
  int64_t grant;
  int64_t floor_ms;
  int64_t until_ms;
  int64_t highest_ms;
};

// The number of the region that this server has leased, or kNoRegion. A database that starts to
// mint in the leased region mints only ids with times at or after `begin_ms`.
struct RegionHold {
  int32_t region;
  int64_t begin_ms;
};

// The action that the lease worker must take after an answer of the lease server.
enum class LeaseEvent : uint8_t {
  stale,       // ignore an answer that is old or for another server run (incarnation)
  taken,       // call take(), because a region was granted
  extended,    // call extend(), because the lease has a later end
  given_back,  // the lease server has recorded the return of the region
  lost,        // call begin() for a new server run (incarnation), because the lease is lost
  ask_again,   // new term (period) of the lease server: call record(), repeat the request at once
  full,        // repeat the request when a region is free
  refused,     // repeat the request after the administrator has acted
  apart,       // ignore the answer, because the clocks differ too much
};

// The argument `giving_back` is true after the lease worker has cleared its region to return it,
// until the lease server has recorded the return. The arguments `sent_ms` and `received_ms` are
// readings of the server's clock before the request and after the answer.
constexpr LeaseEvent read_answer(const LeaseView& mine, bool giving_back, const LeaseAnswer& answer,
                                 int64_t sent_ms, int64_t received_ms, int64_t skew_ms) noexcept {
  if (answer.incarnation != mine.incarnation) return LeaseEvent::stale;
  if (answer.status == AnswerStatus::halted || answer.status == AnswerStatus::clock_ahead ||
      answer.status == AnswerStatus::taken)
    return LeaseEvent::refused;
  if (answer.term < mine.term || (answer.term == mine.term && answer.number <= mine.newest))
    return LeaseEvent::stale;
  if (giving_back) {
    return answer.call == LeaseCall::give_back ? LeaseEvent::given_back : LeaseEvent::stale;
  }
  // An earlier lease worker requested the return of a region, and was killed before the answer
  // arrived.
  if (answer.call == LeaseCall::give_back) return LeaseEvent::stale;
  if (answer.status == AnswerStatus::lost) return LeaseEvent::lost;
  if (answer.status == AnswerStatus::term_over)
    return answer.term > mine.term ? LeaseEvent::ask_again : LeaseEvent::refused;
  const int64_t apart = clocks_apart(sent_ms, answer.clock_ms, received_ms);
  if (apart > skew_ms || apart < -skew_ms) return LeaseEvent::apart;
  if (answer.status == AnswerStatus::full) return LeaseEvent::full;
  if (mine.region != kNoRegion) {
    // If the region or the start of the lease (floor) has changed, the lease is lost. Another
    // server may have held the region in the meantime.
    const bool same = mine.region == answer.region && mine.floor_ms == answer.floor_ms;
    return same ? LeaseEvent::extended : LeaseEvent::lost;
  }
  // An answer to a renewal is outdated if the server has cleared its region since the request.
  return answer.call == LeaseCall::acquire ? LeaseEvent::taken : LeaseEvent::stale;
}

// The lease worker sends random numbers (nonces), so that the lease server detects a copy of the
// worker's memory.
struct LeaseNonce {
  int64_t next;   // the random number (nonce) that the worker sends until a request is granted
  int64_t acked;  // the nonce of the last granted request; 0: none

  // Updates the random numbers (nonces) after an answer of the lease server. REQUIRES that
  // LeaseNonce::next was the nonce of the answered request. The lease server records a nonce only
  // when it grants a request. After a refusal, the worker's next request must contain the nonce of
  // the refused request. The lease server may have recorded the nonce when it granted an earlier
  // request, whose answer was lost. If the worker sent a new nonce, the lease server could mistake
  // the worker for a cloned server and end the lease.
  void answered(AnswerStatus status, int64_t fresh) noexcept {
    if (status != AnswerStatus::granted) return;
    acked = next;
    next = fresh;
  }
};

// `Word` is std::atomic. Unit tests replace std::atomic by a type that stops the writer between two
// stores.
template <template <class> class Word>
class BasicLeaseMemory {
 public:
  LeaseView view() const noexcept {
    // Reads the region before the other members of the lease state, because the writer stores the
    // region last.
    const auto region = static_cast<int32_t>(region_after_.load(std::memory_order_acquire)) - 1;
    const NewestAnswer& newest = newest_[newest_now_.load(std::memory_order_acquire)];
    return {read(incarnation_), read(newest.term), read(newest.number), region,
            read(grant_),       read(floor_),      read(until_),        read(highest_)};
  }

  // Begins a new incarnation (server run) and clears the lease state of the old incarnation. The
  // argument `newest` is the newest answer of the lease server, which reports that the lease is
  // lost. The function `end_limits` withdraws the limits up to which the databases may mint ids.
  // REQUIRES the server-wide lock.
  template <class EndLimits>
  void begin(int64_t incarnation, const LeaseAnswer& newest, EndLimits end_limits) noexcept {
    forget(end_limits);
    // Stores the new incarnation (server run) before the other members of the lease state are
    // cleared. The member `highest_` is the latest time up to which the old server run may have
    // minted ids. If `highest_` were cleared before `incarnation_` changes, a killed worker could
    // restart, lease the same region again, and repeat ids.
    store(incarnation_, incarnation);
    store(until_, 0);
    store(floor_, 0);
    store(highest_, 0);
    store(grant_, 0);
    record(newest);
  }

  // Stores the lease that the lease server has granted. REQUIRES the server-wide lock, and that
  // read_answer() has returned LeaseEvent::taken.
  void take(const LeaseAnswer& answer) noexcept {
    record(answer);
    store(grant_, answer.grant);
    store(floor_, answer.floor_ms);
    store(until_, answer.until_ms);
    raise_highest(answer.floor_ms);
    region_after_.store(answer.region + 1, std::memory_order_release);
  }

  // Stores the new end of the lease. REQUIRES that read_answer() has returned LeaseEvent::extended.
  void extend(const LeaseAnswer& answer) noexcept {
    record(answer);
    store(grant_, answer.grant);
    // An answer never shortens a granted lease.
    if (answer.until_ms > read(until_)) store(until_, answer.until_ms);
  }

  void record(const LeaseAnswer& answer) noexcept {
    // If the lease worker is killed before it stores newest_now_, newest_now_ still selects the
    // previous answer.
    const int64_t next = 1 - read(newest_now_);
    NewestAnswer& newest = newest_[next];
    store(newest.term, answer.term);
    store(newest.number, answer.number);
    newest_now_.store(next, std::memory_order_release);
  }

  // Clears the leased region without beginning a new incarnation (server run). Returns the lease
  // state that was valid before forget() cleared the region. Until the server leases a region
  // again, no session can mint an id later than the returned `highest_ms`. REQUIRES the server-wide
  // lock.
  template <class EndLimits>
  LeaseView forget(EndLimits end_limits) noexcept {
    end_limits();
    const LeaseView last = view();
    region_after_.store(0, std::memory_order_release);
    return last;
  }

  // Returns the time up to which a database with the high-water mark `mark_ms` may issue ids.
  // Raises `highest` to the returned time. REQUIRES the server-wide lock.
  int64_t cover(int64_t mark_ms) noexcept {
    const int64_t covered_ms = covered_until(mark_ms, read(until_));
    raise_highest(covered_ms);
    return covered_ms;
  }

  // Returns the region to pass to Limits::bind(). REQUIRES the server-wide lock.
  RegionHold region() const noexcept {
    const LeaseView now = view();
    return {now.region, now.highest_ms};
  }

  // Raises `highest` to at least `limit_ms`. REQUIRES the server-wide lock.
  void raise_highest(int64_t limit_ms) noexcept {
    if (limit_ms > read(highest_)) store(highest_, limit_ms);
  }

 private:
  // newest_[newest_now_] is the newest answer.
  struct NewestAnswer {
    Word<int64_t> term;
    Word<int64_t> number;
  };

  static int64_t read(const Word<int64_t>& word) noexcept {
    return word.load(std::memory_order_relaxed);
  }
  static void store(Word<int64_t>& word, int64_t value) noexcept {
    word.store(value, std::memory_order_relaxed);
  }

  Word<int64_t> incarnation_;
  NewestAnswer newest_[2];
  Word<int64_t> newest_now_;    // 0 or 1
  Word<int64_t> region_after_;  // region + 1, or 0
  Word<int64_t> grant_;
  Word<int64_t> floor_;
  Word<int64_t> until_;
  Word<int64_t> highest_;
};

template <class T>
using AtomicWord = std::atomic<T>;
using LeaseMemory = BasicLeaseMemory<AtomicWord>;

}  // namespace snowflake
