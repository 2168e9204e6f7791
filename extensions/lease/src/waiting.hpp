// Waits for a socket or pipe until a deadline, or until the latch of the lease worker is set.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

struct Deadline {
  int64_t at_us;  // time of the deadline on the monotonic clock
  bool may_stop;  // whether a shutdown request also ends the wait
};

Deadline in_ms(int64_t ms, bool may_stop);
Deadline earlier(const Deadline& one, const Deadline& other);

// Waits until the socket is ready, the latch of the process is set, or the deadline passes. The
// caller must check the socket, because wait_for() returns null even if the socket is not ready. If
// the caller must stop waiting, returns a text with the reason.
const char* wait_for(pgsocket socket, int events, const Deadline& deadline);

}  // namespace snowflake::lease
