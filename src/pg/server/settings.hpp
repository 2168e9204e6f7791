// The checked settings, in the units of the core. Only define_settings.cpp writes the settings.
#pragma once

#include "core/layout.hpp"
#include "core/shard_set.hpp"

namespace snowflake::pg {

// After the session has read the seal, this variable contains the layout of the database's seal.
// Before the session has read the seal, this variable contains the layout from the settings. Only
// checks/seal_check changes this layout.
extern Layout layout;
void use_layout(const Layout& sealed);
// The layout that the next CREATE EXTENSION seals. Raises an error if the settings are
// inconsistent.
Layout chosen_layout();
extern int64_t server_seal;  // the configured seal at server start, for the lease server

// Fixed at server start; every backend inherits the postmaster's values.
extern const char* lease_conninfo;  // the connection string of the lease server; "": none
extern ShardSet leased_regions;     // the regions that this server may lease; empty: static
extern int lease_ms;
extern int max_skew_ms;

// The greatest number of ids of a call of next_ids().
inline constexpr int kMaxBatch = 1000000;

// Changed by a reload.
extern int max_lead_ms;
extern int reserve_ms;
extern int max_forward_jump_s;
extern double max_clock_error_ms;
extern double clock_error_ms;  // -1: use the kernel's value
extern bool use_tsc;

// The reaction if a database that last minted in another place mints before accept_clone() was
// called: a warning or an error.
enum class OnClone : int { warn, refuse };
extern int on_clone;
inline bool refuse_clones() {
  return static_cast<OnClone>(on_clone) == OnClone::refuse;
}

// Whether ids are minted under a clock that the kernel reports as not synchronized.
enum class Unsynchronized : int { mint, wait_at_start, refuse };
extern int on_unsynchronized;
inline Unsynchronized when_unsynchronized() {
  return static_cast<Unsynchronized>(on_unsynchronized);
}

// Changed by a session. No value of the following settings can cause a duplicate.
extern int default_shard;
extern int max_wait_ms;
extern bool commit_waits;

// max_lead (rounded down) and reserve (rounded up, two at least) in ticks.
extern uint64_t lead_ticks;
extern uint64_t reserve_ticks;
extern uint64_t sequence_starts;  // sequence_spread, at most the layout's sequence numbers

// Citus evaluates defaults on the node where a plan runs, so every node mints.
extern bool citus_preloaded;

}  // namespace snowflake::pg
