// Looks up the addresses of a host without blocking the worker.
//
// getaddrinfo() waits 20 s or more for a name server that does not answer, and cannot be
// interrupted. PostgreSQL's signal handlers and longjmp() do not allow threads. So a child process
// looks the name up. The worker kills the child process if the answer is not needed any more. The
// child process detaches from shared memory and from the log's pipe, so that the server can stop
// and start. The child process runs no code of PostgreSQL. If a background worker looked the name
// up, the worker would delay the stop of the server.
#pragma once

#include "waiting.hpp"

namespace snowflake::lease {

struct Addresses {
  static constexpr int kMost = 8;
  int count;
  char text[kMost][64];  // numeric addresses, in the order of getaddrinfo()
};

// If the host has no address, returns false and stores a message in `why`.
bool resolve(const char* host, const Deadline& deadline, Addresses* addresses, char* why,
             size_t why_size);

// Called after an error inside resolve(): ends the child.
void stop_resolving();

}  // namespace snowflake::lease
