// The state in PostgreSQL's shared memory: the clock watch, and the state of each database that
// mints.
#pragma once

#include <cstdint>

#include "core/counter.hpp"
#include "core/shard.hpp"
#include "pg/memory/lease_port.hpp"
#include "pg/errors/log_limit.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct DatabaseState;

// Steps of the wall clock, and which of them were logged. Offsets are wall clock minus time since
// boot, in microseconds.
struct ClockWatch {
  std::atomic<int64_t> last_offset_us;
  std::atomic<uint64_t> backward_steps;
  std::atomic<int64_t> largest_backward_us;
  std::atomic<uint64_t> forward_steps;
  std::atomic<int64_t> largest_forward_us;
  std::atomic<int64_t> behind_until_ms;  // when the clock will have caught up
  Episode behind;
  Episode ahead;
  Episode unsynchronized;
  LogLimit end_is_near;
  std::atomic<CounterUse> counter_use;
  int64_t counter_cost_ns;   // written at server start
  bool counter_is_constant;  // the same
  LogLimit stepped_ahead;
  LogLimit stepped_back;  // within max_lead
};

// In shared memory. REQUIRES the lock, except for the flag.
struct LeaseStatus {
  Latch* worker;  // null: there is none
  std::atomic<bool> urgent;
  LeaseReport report;
};

struct alignas(PG_CACHE_LINE_SIZE) SharedState {
  LWLock* lock;  // see database_state.hpp
  ClockWatch clock;
  LeaseStatus lease;
  int64_t started_ms;  // wall clock, when this memory was laid out
  int64_t started_us;  // the same by the time since boot
};

// Null if the library was not preloaded.
extern SharedState* shared_state;

// max_databases states.
extern DatabaseState* database_states;

// If a layout has more shards than this, several shards share a counter; their ids differ in the
// shard bits.
inline constexpr uint32_t kMaxShardCounters = 65536;

}  // namespace snowflake::pg
