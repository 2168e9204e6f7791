// The functions of snowflake's library for the library that leases regions (extensions/lease),
// passed in a rendezvous variable. The generator needs only libc. The lease library needs libpq and
// is loaded only if "snowflake.lease_conninfo" is set.
//
// Thread safety: only the lease worker may call these functions. The functions take
// shared_state->lock.
#pragma once

#include "core/lease_memory.hpp"

namespace snowflake::pg {

inline constexpr char kLeasePortName[] = "snowflake_lease_port";

// The worker's exchanges with the lease server, for the view snowflake.lease.
struct LeaseReport {
  int64_t renewed_ms;       // the time of the last grant or renewal; 0: none yet
  int64_t missed;           // failed exchanges since the last grant or renewal
  int64_t contact_ms;       // the time of the lease server's last answer; 0: none yet
  int64_t clocks_apart_ms;  // how far the server's clock was ahead of the lease server's
  char message[1024];       // the last message of the worker or the lease server
  char conflict[320];       // another server in the same region; empty if unknown
};

struct LeasePort {
  const char* version;  // the version of snowflake's library; the lease library needs this version

  // Settings. A setting without a pointer is fixed at server start.
  const char* conninfo;
  const char* regions;  // the regions that this server may lease, as an SQL array
  const int32_t*
      static_region;  // the static region, which a reload changes; null: the region is leased
  int64_t seal;
  int64_t lease_ms;
  int64_t skew_ms;
  const int* max_lead_ms;
  const int* reserve_ms;

  LeaseView (*view)();
  int64_t (*fleet)();   // the fleet's number, from the lease server; 0: not received yet
  int64_t (*age_ms)();  // the age of the incarnation

  // The members of LeaseMemory. `begin` and `forget` first withdraw the limits of all databases.
  // `forget` returns the cleared lease, which the worker must give back. `asked_offset_us` is
  // clock_offset_us(), read before the clock of the request. A grant confirms the offset
  // `asked_offset_us`.
  void (*begin)(int64_t incarnation, const LeaseAnswer& newest);
  void (*take)(const LeaseAnswer& answer, int64_t fleet, int64_t asked_offset_us);
  void (*extend)(const LeaseAnswer& answer, int64_t asked_offset_us);
  void (*record)(const LeaseAnswer& answer);
  LeaseView (*forget)();

  void (*report)(const LeaseReport& report);

  // Registers this process as the lease worker: a session that needs a lease sets the latch of this
  // process. Returns false if the previous worker has not ended yet.
  bool (*serve)();
  bool (*is_urgent)();  // whether a session has set the latch since the last call
};

}  // namespace snowflake::pg
