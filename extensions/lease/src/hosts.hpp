// Chooses the next host of the connection string, and one address of the host.
//
// libpq tries the next host only if libpq cannot connect. libpq blocks during the look-up of a
// name. So find_target() reads the list of hosts from the connection string, the service file and
// the environment. libpq gets only one address. The worker continues to use a host that answers.
#pragma once

#include "resolver.hpp"

namespace snowflake::lease {

// A field is empty if libpq's default holds.
struct Target {
  char host[256];
  char hostaddr[64];
  char port[32];
  int connect_timeout_ms;  // the value in the connection string; 0: none
  bool alone;              // there is no second host or address
  char name[400];          // for people
};

// Gets the next host of the round. If the name of the host has no address, returns false and stores
// the reason in `why`.
bool find_target(const char* conninfo, const Deadline& deadline, Target* target, char* why,
                 size_t why_size);

// Called when the host has answered: begins a new round.
void stay();

// Goes to the next host. Returns false if all hosts of the present round have been tried.
bool leave();

}  // namespace snowflake::lease
