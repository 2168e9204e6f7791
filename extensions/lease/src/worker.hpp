// The worker acquires a region when the server starts. The worker renews the lease after a third of
// the lease's duration. The worker gives the region back when the server stops.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

// start.cpp

// Looks up the functions of the generator's library, the `port` of messages.hpp.
void find_port();

BackgroundWorker describe_worker();

// worker.cpp

// When the worker sends requests. Times are of the monotonic clock.
struct Schedule {
  int64_t asked_us;  // when the last exchange began
  int64_t due_us;
  int64_t pause_ms;  // the pause between a failed attempt and the next attempt
};
extern Schedule schedule;

void begin_exchanges();

// Sends one request, and acts on the answer.
void exchange();

// If all hosts have failed, the worker tries again after a pause.
void retry_later();

// Gives the region back when the server stops. The time for giving back is limited, because a fast
// shutdown waits for the worker.
void give_back();

}  // namespace snowflake::lease
