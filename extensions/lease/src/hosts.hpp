// Chooses the next host of the connection string, and one of its addresses.
//
// libpq tries the next host only if it cannot connect, and it blocks while it looks up names. So
// this reads the list of hosts from the connection string, the service file and the environment,
// and gives libpq one address. The worker stays with a host that answers, and leaves the others.
#pragma once

#include "resolver.hpp"

namespace snowflake::lease {

// A field is empty if libpq's default holds.
struct Target {
  char host[256];
  char hostaddr[64];
  char port[32];
  int connect_timeout_ms;  // as the connection string has it, 0: none
  bool alone;              // there is no other
  char name[400];          // for people
};

// Returns the host whose turn it is. False if its name has no address; `why` is the reason, for
// people.
bool find_target(const char* conninfo, const Deadline& deadline, Target* target, char* why,
                 size_t why_size);

// The host has answered: a new round begins.
void stay();

// Goes to the next host. Returns false if all hosts of this round have been tried.
bool leave();

}  // namespace snowflake::lease
