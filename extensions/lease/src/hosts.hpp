// Chooses one address of one host from the connection string.
//
// libpq tries the next host only if it cannot connect, and blocks while it looks up a host name. If
// the lists of hosts and ports are valid, this code passes only one address to libpq. With one
// address, libpq does not look up a host name. The lease worker keeps using a host that answers.
#pragma once

#include "resolver.hpp"

namespace snowflake::lease {

// If a field of Target is empty, libpq uses its default.
struct Target {
  char host[256];
  char hostaddr[64];
  char port[32];
  int connect_timeout_ms;  // 0 if the connection string does not set connect_timeout
  bool alone;              // true if the connection string has only this host and address
  char name[400];          // host and address of the lease server, as text for messages
};

// Stores the next host of the connection string in `target`. If the host name has no address,
// returns false and stores the reason in `why`.
bool find_target(const char* conninfo, const Deadline& deadline, Target* target, char* why,
                 size_t why_size);

// Keeps the present host, and begins a new round through the list of hosts. Call stay() when a host
// has answered.
void stay();

// Goes to the next host. Returns false if every host in the list has been tried in this round.
bool leave();

}  // namespace snowflake::lease
