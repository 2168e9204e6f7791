// Which host of the connection string is asked next, and at which of its addresses.
//
// libpq goes to the next host only where it cannot connect to one, and asks for names by itself,
// which blocks. So the list is read here, wherever it stands (the string, the service file, the
// environment), and libpq is given one address. The worker stays with a host that answers, and
// leaves one whose answer is none.
#pragma once

#include "resolver.hpp"

namespace snowflake::lease {

// Empty where libpq's own default holds.
struct Target {
  char host[256];
  char hostaddr[64];
  char port[32];
  int connect_timeout_ms;  // as the connection string has it, 0: none
  bool alone;              // there is no other
  char name[400];          // for people
};

// The one whose turn it is. False where its name has no address; `why` says so, for people.
bool find_target(const char* conninfo, const Deadline& deadline, Target* target, char* why,
                 size_t why_size);

// It has answered: what follows is a new round.
void stay();

// Its answer was none: the next one's turn. False where all have had theirs.
bool leave();

}  // namespace snowflake::lease
