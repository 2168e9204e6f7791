// Only the code in define_settings.cpp changes the variables of the settings.
#pragma once

#include "core/layout.hpp"
#include "core/shard_set.hpp"

namespace snowflake::pg {

// After the session has read the stored layout (seal), `layout` is the layout of the database.
// Until the session reads the stored layout, `layout` is taken from the settings
// "snowflake.layout", "snowflake.tick" and "snowflake.epoch". Only checks/seal_check calls
// use_layout().
extern Layout layout;
void use_layout(const Layout& sealed);
// Returns the configured layout of ids, which the next CREATE EXTENSION will store. Raises an error
// if the layout settings are inconsistent.
Layout chosen_layout();
extern int64_t server_seal;  // the configured layout of ids at server start

// A change of the following settings needs a restart of the server.
extern const char* lease_conninfo;  // empty: no lease server
extern ShardSet leased_regions;     // empty: not leased
extern int lease_ms;
extern int max_skew_ms;

// The greatest number of ids in one call of next_ids().
inline constexpr int kMaxBatch = 1000000;

// The following settings change at a reload of the configuration.
extern int max_lead_ms;
extern int reserve_ms;
extern int max_forward_jump_s;
extern double max_clock_error_ms;
extern double clock_error_ms;  // -1: use the kernel's value
extern bool use_tsc;

enum class OnClone : int { warn, refuse };
extern int on_clone;
inline bool refuse_clones() {
  return static_cast<OnClone>(on_clone) == OnClone::refuse;
}

enum class Unsynchronized : int { mint, wait_at_start, refuse };
extern int on_unsynchronized;
inline Unsynchronized when_unsynchronized() {
  return static_cast<Unsynchronized>(on_unsynchronized);
}

// Any session can change the following settings, because no value of them can cause a duplicate id.
extern int default_shard;
extern int max_wait_ms;
extern bool commit_waits;

// The variable lead_ticks is "snowflake.max_lead" in ticks (time units), rounded down. The variable
// reserve_ticks is "snowflake.reserve" in ticks, rounded up, and at least 2.
extern uint64_t lead_ticks;
extern uint64_t reserve_ticks;
extern uint64_t sequence_starts;  // at most 2^sequence_bits

// With Citus, every node mints, because Citus evaluates defaults on the node where a plan runs.
extern bool citus_preloaded;

}  // namespace snowflake::pg
