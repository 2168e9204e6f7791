// Waits with a time limit for sockets and pipes. The worker's latch ends the wait.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

struct Deadline {
  int64_t at_us;  // of the monotonic clock
  bool may_stop;  // the wait also ends when the worker must end
};

Deadline in_ms(int64_t ms, bool may_stop);
Deadline earlier(const Deadline& one, const Deadline& other);

// Waits for an event. Returns null, or the reason to stop waiting. An interrupt can end the wait.
const char* wait_for(pgsocket socket, int events, const Deadline& deadline);

}  // namespace snowflake::lease
