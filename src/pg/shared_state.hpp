// What the server's processes share: the shards' words, a slot per database, and the clock watch.
//
// Locking rules
//  - atomics are read without a lock, and all but a slot's `generation` and `limit` also written;
//  - a slot's other fields, and every change of its `generation` and `limit`, take state->lock;
//  - nothing that can block (a heavyweight lock, a catalogue read, a flush) happens under it.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/limit.hpp"
#include "core/shard.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {

// A database that mints, and the identity of the high-water mark that its limit was taken from.
struct alignas(64) Slot {
  Oid database;  // InvalidOid: free
  Oid mark;      // snowflake.high_water: relation, and its storage
  Oid mark_storage;
  std::atomic<uint32_t> generation;  // raised whenever published limits stop being good
  Limit limit;                       // positions below it may be claimed; rises within a generation
  std::atomic<int64_t>
      known_ms;  // greatest mark read or written; the words are lifted to what was read
  std::atomic<int64_t> floor_ms;      // the mark that was found when the slot was loaded
  std::atomic<int64_t> seal_checked;  // when the seal was last found good (monotonic_us), or 0
};

// Steps of the wall clock. Offsets are wall clock less time since boot, in microseconds.
struct ClockWatch {
  std::atomic<int64_t> last_offset_us;
  std::atomic<uint64_t> backward_steps;
  std::atomic<int64_t> largest_backward_us;
};

struct alignas(PG_CACHE_LINE_SIZE) SharedState {
  LWLock* lock;
  ClockWatch clock;
};

// Null where the library was not preloaded.
extern SharedState* state;
extern Slot* slots;
extern Shard* shards;

// Layouts with more shards than this let several share a word: ids differ in the shard bits.
inline constexpr uint32_t kMaxWords = 65536;
uint32_t word_count();

inline Shard& word_of(uint32_t shard) {
  return shards[shard % kMaxWords];
}

// Makes every later position of every shard at least `floor`.
void lift_words(uint64_t floor);

// Asks for the memory once the postmaster has read its configuration.
void install_shared_state();

// The slot of the current database, or null.
Slot* find_slot();
// The same, taking a free slot where there is none; null, or an error, where all are taken.
Slot* find_or_try_slot();
Slot* find_or_take_slot();

// The mark that the slot's limit was taken from, or InvalidOid.
struct MarkIdentity {
  Oid relation;
  Oid storage;
};
MarkIdentity mark_of(const Slot& slot);

}  // namespace snowflake::pg
