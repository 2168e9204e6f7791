// The lease worker acquires a region when the server starts, and gives the region back when the
// server stops. A lease is renewed after a third of its duration.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

// Functions of start.cpp

// Sets `port` of messages.hpp.
void find_port();

BackgroundWorker describe_worker();

// Functions of worker.cpp

// The times of the last and next request to the lease server, on the monotonic clock, and the pause
// after failures.
struct Schedule {
  int64_t asked_us;
  int64_t due_us;
  int64_t pause_ms;  // the pause between failed attempts
};
extern Schedule schedule;

void begin_exchanges();

// Sends one request to the lease server, and acts on the answer.
void exchange();

// Tries the next host of the lease server at once. If all hosts of the lease server have failed,
// the lease worker waits before the next attempt.
void retry_later();

void give_back();

}  // namespace snowflake::lease
