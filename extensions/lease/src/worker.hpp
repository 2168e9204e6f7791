// The worker that leases: acquires a region when the server starts, renews it at a third of its
// time, gives it back when the server stops.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

// start.cpp

// Looks up what the generator's library offers, the `port` of messages.hpp.
void find_port();

BackgroundWorker describe_worker();

// worker.cpp

// When the lease server is asked. Times of the monotonic clock.
struct Schedule {
  int64_t asked_us;  // when the last exchange began
  int64_t due_us;
  int64_t pause_ms;  // before the next attempt after a failure
};
extern Schedule schedule;

void begin_exchanges();

// Asks for a region, or for more time, and does what the answer says.
void exchange();

// Nothing has come of it: of the next host at once, and when all have been asked, after a pause.
void retry_later();

// When the server stops. Bounded, for a fast stop waits for it.
void give_back();

}  // namespace snowflake::lease
