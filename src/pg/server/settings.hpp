// The settings, checked, and in the units of the core. Only define_settings.cpp writes them.
#pragma once

#include "core/layout.hpp"
#include "core/shard_set.hpp"

namespace snowflake::pg {

// The layout of the database's seal, once the session has read it. Until then, the layout that the
// settings choose. Only checks/seal_check changes it.
extern Layout layout;
void use_layout(const Layout& sealed);
// The layout that the next CREATE EXTENSION seals. Raises an error if the settings are
// inconsistent.
Layout chosen_layout();
extern int64_t
    server_seal;  // the seal of that layout at server start; the lease server compares this seal

// Fixed at server start; every backend inherits the postmaster's values.
extern const char* lease_conninfo;  // the connection string of the lease server; "": none
extern ShardSet
    leased_regions;  // the regions that this server may lease; empty: the region is static
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

// What happens if a database that last minted elsewhere mints before accept_clone() was called: a
// warning or an error.
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

// Changed by a session; no value can cause a duplicate.
extern int default_shard;
extern int max_wait_ms;
extern bool commit_waits;

// max_lead (rounded down) and reserve (rounded up, two at least) in ticks.
extern uint64_t lead_ticks;
extern uint64_t reserve_ticks;
extern uint64_t sequence_starts;  // sequence_spread, at most the layout's sequence numbers

// Citus evaluates defaults on the node where its plan runs, so every node mints.
extern bool citus_preloaded;

}  // namespace snowflake::pg
