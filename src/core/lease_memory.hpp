// The lease state of a server that mints: the server's incarnation, and how an answer of the lease
// server changes the state.
//
// The memory belongs to the postmaster. The memory survives a crash of a backend. The memory is
// empty after a restart, in a clone and in a promoted standby. Only the lease worker writes the
// lease memory. A session that publishes a limit raises `highest`, and holds the lock that cover()
// requires. Worker and sessions may be killed between two stores. The members other than the region
// are valid only while a region is set. So the region is stored last and cleared first.
//
// Invariants
//  1. While a region is held, every published limit is at most `highest`, and floor <= highest <=
//     until.
//  2. A region is taken only if no region is held and no region is being given back.
#pragma once

#include <atomic>

#include "core/lease.hpp"

namespace snowflake {

// A copy of the members of the lease memory. The worker may read this copy without the lock.
// Sessions need the lock.
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

// Returns the region that this server holds, or kNoRegion. A database that is new in the region
// mints from the time `begin_ms`.
struct RegionHold {
  int32_t region;
  int64_t begin_ms;
};

// What an answer of the lease server means for the current incarnation.
enum class LeaseEvent : uint8_t {
  stale,       // ignored: the answer is for another incarnation, or not newer than the last answer
  taken,       // a region is granted: take()
  extended,    // the held region got more time: extend()
  given_back,  // the lease server has recorded the return of the region
  lost,        // the incarnation has ended: begin() a new incarnation
  ask_again,   // record() the answer, and send the next request at once
  full,        // send the request again when a region is free
  refused,     // send the request again later; an operator must act
  apart,       // the clocks of the two servers are too far apart: the answer is discarded
};

// If `giving_back` is set, the worker has cleared its region in order to give the region back.
// REQUIRES: `sent_ms` and `received_ms` are readings of the server's clock before the request and
// after the answer.
constexpr LeaseEvent read_answer(const LeaseView& mine, bool giving_back, const LeaseAnswer& answer,
                                 int64_t sent_ms, int64_t received_ms, int64_t skew_ms) noexcept {
  if (answer.incarnation != mine.incarnation) return LeaseEvent::stale;
  if (answer.status == AnswerStatus::halted || answer.status == AnswerStatus::clock_ahead ||
      answer.status == AnswerStatus::taken)
    return LeaseEvent::refused;
  if (answer.term < mine.term || (answer.term == mine.term && answer.number <= mine.newest))
    return LeaseEvent::stale;
  if (giving_back) {
    // Answers to earlier requests are ignored.
    return answer.call == LeaseCall::give_back ? LeaseEvent::given_back : LeaseEvent::stale;
  }
  // The answer is for a worker that was killed while that worker gave the region back. The present
  // worker does not return the killed worker's region, but requests a region.
  if (answer.call == LeaseCall::give_back) return LeaseEvent::stale;
  if (answer.status == AnswerStatus::lost) return LeaseEvent::lost;
  if (answer.status == AnswerStatus::term_over)
    return answer.term > mine.term ? LeaseEvent::ask_again : LeaseEvent::refused;
  const int64_t apart = clocks_apart(sent_ms, answer.clock_ms, received_ms);
  if (apart > skew_ms || apart < -skew_ms) return LeaseEvent::apart;
  if (answer.status == AnswerStatus::full) return LeaseEvent::full;
  if (mine.region != kNoRegion) {
    // If region or floor in an answer differs from the held lease, the answer belongs to an old
    // request. After an old request, this server lost the region, and another server may have held
    // the region.
    const bool same = mine.region == answer.region && mine.floor_ms == answer.floor_ms;
    return same ? LeaseEvent::extended : LeaseEvent::lost;
  }
  // An answer to a renewal is stale, because the region was cleared in the meantime.
  return answer.call == LeaseCall::acquire ? LeaseEvent::taken : LeaseEvent::stale;
}

// Contains the numbers in a worker's requests by which the lease server detects a copy of the
// worker's memory.
struct LeaseNonce {
  int64_t next;   // the nonce of each request until a request is granted
  int64_t acked;  // the nonce of the last granted request; 0: none yet

  // REQUIRES: an answer to a request that carried `next`. The lease server records a nonce only
  // when the lease server grants a request. So after a refusal, the worker sends its nonce again.
  // If the worker changed its nonce after a refusal, the lease server would detect a copy of the
  // worker.
  void answered(AnswerStatus status, int64_t fresh) noexcept {
    if (status != AnswerStatus::granted) return;
    acked = next;
    next = fresh;
  }
};

// The template argument Word is std::atomic. Tests pass a type that stops the writer between two
// stores.
template <template <class> class Word>
class BasicLeaseMemory {
 public:
  LeaseView view() const noexcept {
    // Reads the region first, because the writer stores the region after the members that belong to
    // the region.
    const auto region = static_cast<int32_t>(region_after_.load(std::memory_order_acquire)) - 1;
    const NewestAnswer& newest = newest_[newest_now_.load(std::memory_order_acquire)];
    return {read(incarnation_), read(newest.term), read(newest.number), region,
            read(grant_),       read(floor_),      read(until_),        read(highest_)};
  }

  // Begins a new incarnation and clears the state of the earlier incarnation. `newest` is the
  // answer that ended the earlier incarnation. `end_limits` withdraws the limits of all databases.
  // REQUIRES the lock.
  template <class EndLimits>
  void begin(int64_t incarnation, const LeaseAnswer& newest, EndLimits end_limits) noexcept {
    forget(end_limits);
    // The new number is stored before the other members are cleared. If the worker were killed
    // after the members were cleared, the old incarnation could get its region again without the
    // record of its limits.
    store(incarnation_, incarnation);
    store(until_, 0);
    store(floor_, 0);
    store(highest_, 0);
    store(grant_, 0);
    record(newest);
  }

  // REQUIRES LeaseEvent::taken, and the lock.
  void take(const LeaseAnswer& answer) noexcept {
    record(answer);
    store(grant_, answer.grant);
    store(floor_, answer.floor_ms);
    store(until_, answer.until_ms);
    raise_highest(answer.floor_ms);
    region_after_.store(answer.region + 1, std::memory_order_release);
  }

  // REQUIRES LeaseEvent::extended.
  void extend(const LeaseAnswer& answer) noexcept {
    record(answer);
    store(grant_, answer.grant);
    // A grant is never shortened.
    if (answer.until_ms > read(until_)) store(until_, answer.until_ms);
  }

  // Records only the term and the number of the newest answer.
  void record(const LeaseAnswer& answer) noexcept {
    // If the worker is killed before the last store, the old term and number stay valid.
    const int64_t next = 1 - read(newest_now_);
    NewestAnswer& newest = newest_[next];
    store(newest.term, answer.term);
    store(newest.number, answer.number);
    newest_now_.store(next, std::memory_order_release);
  }

  // Clears the region, but the incarnation continues. Returns the state of the region that is given
  // back. No limit above the returned `highest_ms` will be published. REQUIRES the lock.
  template <class EndLimits>
  LeaseView forget(EndLimits end_limits) noexcept {
    end_limits();
    const LeaseView last = view();
    region_after_.store(0, std::memory_order_release);
    return last;
  }

  // Returns the time up to which a database with this mark may issue ids. Records the returned time
  // in `highest` before the function returns. REQUIRES the lock.
  int64_t cover(int64_t mark_ms) noexcept {
    const int64_t covered_ms = covered_until(mark_ms, read(until_));
    raise_highest(covered_ms);
    return covered_ms;
  }

  // Returns the region that a database passes to Limits::bind(). REQUIRES the lock.
  RegionHold region() const noexcept {
    const LeaseView now = view();
    return {now.region, now.highest_ms};
  }

  // REQUIRES the lock.
  void raise_highest(int64_t limit_ms) noexcept {
    if (limit_ms > read(highest_)) store(highest_, limit_ms);
  }

 private:
  // The term and the number of an answer. The newest answer is newest_[newest_now_].
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
  Word<int64_t> region_after_;  // the region plus 1, so that zeroed memory means no region
  Word<int64_t> grant_;
  Word<int64_t> floor_;
  Word<int64_t> until_;
  Word<int64_t> highest_;
};

template <class T>
using AtomicWord = std::atomic<T>;
using LeaseMemory = BasicLeaseMemory<AtomicWord>;

}  // namespace snowflake
