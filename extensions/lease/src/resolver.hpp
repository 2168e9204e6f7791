// Looks up the addresses of a host in a child process, so that the lease worker is not blocked.
//
// getaddrinfo() cannot be interrupted, and waits 20 s or more for a name server that does not
// answer. A thread must not call getaddrinfo(), because PostgreSQL's signal handlers and longjmp()
// are unsafe in a process with several threads. A background worker that looks up the host would
// delay the stop of the server. The lease worker calls getaddrinfo() in a child process, which the
// lease worker can kill at any time. The child process detaches from shared memory and from the
// log's pipe, so that the server can stop and start.
#pragma once

#include "waiting.hpp"

namespace snowflake::lease {

struct Addresses {
  static constexpr int kMost = 8;
  int count;
  char text[kMost][64];  // numeric, in getaddrinfo()'s order
};

// If the host has no address, returns false and stores a message in `why`.
bool resolve(const char* host, const Deadline& deadline, Addresses* addresses, char* why,
             size_t why_size);

// Ends the child process that looks up a host name. Call stop_resolving() after an error inside
// resolve().
void stop_resolving();

}  // namespace snowflake::lease
