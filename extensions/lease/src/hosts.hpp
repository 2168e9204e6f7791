// Chooses one address of one host from the connection string.
//
// libpq itself tries the next host only if it cannot connect, and blocks while it looks up a host
// name. libpq therefore gets only one address per exchange. The lease worker keeps using a host
// that answers.
#pragma once

#include "resolver.hpp"

namespace snowflake::lease {

// An empty field of Target stands for libpq's default.
struct Target {
  char host[256];
  char hostaddr[64];
  char port[32];
  int connect_timeout_ms;  // 0: not set in the connection string
  bool alone;              // whether no other host or address exists
  char name[400];          // the host and address, for messages
};

// Stores the next host of the connection string in `target`. If the host name has no address,
// returns false and stores the reason in `why`.
bool find_target(const char* conninfo, const Deadline& deadline, Target* target, char* why,
                 size_t why_size);

// Keeps the present host, and begins a new round through the list of hosts. stay() must be called
// when a host has answered.
void stay();

// Goes to the next host. Returns false if every host in the list has been tried in this round.
bool leave();

}  // namespace snowflake::lease
