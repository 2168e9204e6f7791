// The functions of snowflake's library that the lease library (extensions/lease) calls. A
// rendezvous variable contains the functions, because the generator must need only libc. The lease
// library needs libpq and is loaded only if "snowflake.lease_conninfo" is set.
//
// Only the lease worker may call these functions, which take shared_state->lock.
#pragma once

#include "core/lease_memory.hpp"

namespace snowflake::pg {

inline constexpr char kLeasePortName[] = "snowflake_lease_port";

// The worker's exchanges with the lease server, for the view snowflake.lease.
struct LeaseReport {
  int64_t renewed_ms;       // the time of the last grant or renewal, or 0
  int64_t missed;           // failed exchanges since the last grant or renewal
  int64_t contact_ms;       // the time of the lease server's last answer, or 0
  int64_t clocks_apart_ms;  // how far this clock was ahead of the lease server's
  char message[1024];       // the last message of the worker or the lease server
  char conflict[320];       // another server in the same region; empty if unknown
};

struct LeasePort {
  const char* version;  // the lease library must have the same version

  // A setting without a pointer is fixed at server start.
  const char* conninfo;
  const char* regions;           // the regions that this server may lease, as an SQL array
  const int32_t* static_region;  // changes at a reload; null: the region is leased
  int64_t seal;
  int64_t lease_ms;
  int64_t skew_ms;
  const int* max_lead_ms;
  const int* reserve_ms;

  LeaseView (*view)();
  int64_t (*fleet)();   // from the lease server; 0: not received yet
  int64_t (*age_ms)();  // the age of the incarnation

  // These functions call the members of LeaseMemory. `begin` and `forget` first withdraw the limits
  // of all databases. The worker must give back the cleared lease that `forget` returns.
  // `asked_offset_us` is clock_offset_us() before the request's clock reading. A grant confirms
  // this offset.
  void (*begin)(int64_t incarnation, const LeaseAnswer& newest);
  void (*take)(const LeaseAnswer& answer, int64_t fleet, int64_t asked_offset_us);
  void (*extend)(const LeaseAnswer& answer, int64_t asked_offset_us);
  void (*record)(const LeaseAnswer& answer);
  LeaseView (*forget)();

  void (*report)(const LeaseReport& report);

  // Registers this process as the lease worker, whose latch is set by sessions that need a lease.
  // Returns false if the previous worker has not ended yet.
  bool (*serve)();
  bool (*is_urgent)();  // whether a session has set the latch since the last call
};

}  // namespace snowflake::pg
