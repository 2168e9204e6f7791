// Messages of the worker, for the view snowflake.lease and for the server's log.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

// The generator's library, as it offers itself; null before start.
extern const pg::LeasePort* port;

// The worker's part of the view's row. The functions below publish it.
extern pg::LeaseReport report;

// A time in UTC, to compare the logs of two servers. The text is valid until the next call.
const char* time_text(int64_t ms);

// Sets the message of the view, without a line in the log.
void set_message(const char* text);

// Sets the message and logs it at `level`. After a failure the level is at least LOG, so that the
// log shows that the failure is over.
void log_event(int level, const char* text);

// Sets the message, and logs a failure: a new kind at once, the same kind once a minute. The kind
// is the text without its numbers.
void log_failure(const char* text);

// Logs a message of the lease server that came with a valid answer, each kind once.
void log_remark(const char* text);

}  // namespace snowflake::lease
