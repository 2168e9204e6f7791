// Waits for a socket or pipe, with a deadline. The latch of the lease worker interrupts the wait
// for the socket or pipe.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

struct Deadline {
  int64_t at_us;  // time of the deadline on the monotonic clock
  bool may_stop;  // whether a shutdown request also ends the wait
};

Deadline in_ms(int64_t ms, bool may_stop);
Deadline earlier(const Deadline& one, const Deadline& other);

// Returns null after any event, so that the caller checks what happened. Returns the reason if the
// caller must stop waiting.
const char* wait_for(pgsocket socket, int events, const Deadline& deadline);

}  // namespace snowflake::lease
