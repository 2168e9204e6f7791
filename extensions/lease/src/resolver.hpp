// The addresses of a host, without standing still.
//
// getaddrinfo() waits for a silent name server for 20 s and more, and nothing ends it. A thread is
// no way out in a process of PostgreSQL's: its signal handlers and its longjmp() are for one. So a
// child process asks, and is killed where the answer is not wanted any more. It has detached from
// shared memory and from the log's pipe, so it keeps no server from stopping or starting, and it
// runs none of PostgreSQL's code. A background worker would not do: the server's stop waits for it.
#pragma once

#include "waiting.hpp"

namespace snowflake::lease {

struct Addresses {
  static constexpr int kMost = 8;
  int count;
  char text[kMost][64];  // numeric, in the order of getaddrinfo()
};

// False where there are none; `why` says so, for people.
bool resolve(const char* host, const Deadline& deadline, Addresses* addresses, char* why,
             size_t why_size);

// After an error that cut resolve() short.
void stop_resolving();

}  // namespace snowflake::lease
