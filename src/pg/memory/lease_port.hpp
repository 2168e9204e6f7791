// The interface of the generator's library for the one that leases regions (extensions/lease), by a
// rendezvous variable: the one needs nothing but libc, the other libpq, and is loaded only where
// "snowflake.lease_conninfo" is set.
//
// Thread safety: for the one worker that leases. Each member takes shared_state->lock itself.
#pragma once

#include "core/lease_memory.hpp"

namespace snowflake::pg {

inline constexpr char kLeasePortName[] = "snowflake_lease_port";

// The worker's exchanges, for the view snowflake.lease.
struct LeaseReport {
  int64_t renewed_ms;       // when a lease was last granted or renewed, 0: not yet
  int64_t missed;           // exchanges since then that brought none
  int64_t contact_ms;       // when the lease server last answered anything, 0: not yet
  int64_t clocks_apart_ms;  // how far the server's clock was ahead of the lease server's then
  char message[1024];       // the last one, of either side
  char conflict[320];       // another server that mints in the same region; empty: none is known
};

struct LeasePort {
  const char* version;  // of the generator's library: both are built from one source

  // Settings, fixed at server start but for max_lead and reserve.
  const char* conninfo;
  const char* regions;    // of this server, as an array of SQL
  int32_t static_region;  // kNoRegion: it is leased
  int64_t seal;
  int64_t lease_ms;
  int64_t skew_ms;
  const int* max_lead_ms;
  const int* reserve_ms;

  LeaseView (*view)();
  int64_t (*fleet)();   // as the lease server has named itself, 0: not yet
  int64_t (*age_ms)();  // of the incarnation

  // As the members of LeaseMemory; `begin` and `forget` withdraw the limits of all databases
  // before. `forget` returns what the memory said then: what is to be given back. `asked_offset_us`
  // is clock_offset_us() of before the request's clock was read: what a grant confirms.
  void (*begin)(int64_t incarnation, const LeaseAnswer& newest);
  void (*take)(const LeaseAnswer& answer, int64_t fleet, int64_t asked_offset_us);
  void (*extend)(const LeaseAnswer& answer, int64_t asked_offset_us);
  void (*record)(const LeaseAnswer& answer);
  LeaseView (*forget)();

  void (*report)(const LeaseReport& report);

  // This process is the one whose latch sessions set when they need time. False where there is
  // another that has not ended yet.
  bool (*serve)();
  bool (*is_urgent)();  // whether one has, since this was last asked
};

}  // namespace snowflake::pg
