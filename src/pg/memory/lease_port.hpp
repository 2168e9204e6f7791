// The lease library (extensions/lease) calls functions of snowflake's library through LeasePort.
// The lease library finds the struct LeasePort through a rendezvous variable of PostgreSQL. Only
// the lease library is linked with libpq. The lease library is loaded only if
// "snowflake.lease_conninfo" is set.
//
// Only the lease worker may call the functions of LeasePort, because the functions take
// shared_state->lock.
#pragma once

#include "core/lease_memory.hpp"

namespace snowflake::pg {

inline constexpr char kLeasePortName[] = "snowflake_lease_port";

// Contains the state of the lease worker and of its connection to the lease server, which the view
// snowflake.lease shows.
struct LeaseReport {
  int64_t renewed_ms;       // 0: no lease yet
  int64_t missed;           // failed requests since the last renewal of the lease
  int64_t contact_ms;       // 0: no answer yet
  int64_t clocks_apart_ms;  // positive: this server's clock is ahead of the lease server's
  char message[1024];       // the last message of the worker or of the lease server
  char conflict[320];       // another server with the same region, or empty
};

struct LeasePort {
  // The version of the library snowflake. The library snowflake_lease must have the same version.
  const char* version;

  // `static_region`, `max_lead_ms` and `reserve_ms` are pointers, because a reload can change the
  // three settings. The other settings change only when the server restarts.
  const char* conninfo;
  const char* regions;           // an SQL array
  const int32_t* static_region;  // null: the region is leased
  int64_t seal;
  int64_t lease_ms;
  int64_t skew_ms;
  const int* max_lead_ms;
  const int* reserve_ms;

  LeaseView (*view)();
  int64_t (*fleet)();   // 0: no answer yet
  int64_t (*age_ms)();  // the age of the incarnation

  // The function pointers `begin`, `take`, `extend`, `record` and `forget` call the member
  // functions of LeaseMemory that have the same names. In all databases, begin() and forget() first
  // withdraw the limit up to which sessions may mint ids. The function forget() ends the use of the
  // leased region. The lease worker must then give the lease back to the lease server. The argument
  // `asked_offset_us` is the clock offset (wall clock minus time since boot) before the request. If
  // the wall clock jumped before the request for a lease, the granted lease confirms the new time,
  // like a call of accept_clock().
  void (*begin)(int64_t incarnation, const LeaseAnswer& newest);
  void (*take)(const LeaseAnswer& answer, int64_t fleet, int64_t asked_offset_us);
  void (*extend)(const LeaseAnswer& answer, int64_t asked_offset_us);
  void (*record)(const LeaseAnswer& answer);
  LeaseView (*forget)();

  void (*report)(const LeaseReport& report);

  // Registers this process as the lease worker, so that sessions can set its latch. Returns false
  // if the previous lease worker has not ended yet.
  bool (*serve)();
  bool (*is_urgent)();  // whether a session has set the latch
};

}  // namespace snowflake::pg
