// Messages of the lease worker, for the view snowflake.lease and for the server's log.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

// The functions that snowflake's library offers to the lease library; null before the server start.
extern const pg::LeasePort* port;

// The columns of the view snowflake.lease that the worker fills. The functions below publish these
// columns.
extern pg::LeaseReport report;

// A time in UTC, to compare the logs of two servers. The text is valid until the next call.
const char* time_text(int64_t ms);

// Sets the message of the view, without a line in the log.
void set_message(const char* text);

// Sets the message of the view, and logs the message at `level`. After a failure the level is at
// least LOG, so that the log shows the end of the failure.
void log_event(int level, const char* text);

// Sets the message, and logs a failure. A new kind of failure is logged at once, and a repeated
// kind of failure once a minute. Two messages are of one kind if they differ only in numbers.
void log_failure(const char* text);

// Logs a message that the lease server sent with a valid answer, once for each kind.
void log_remark(const char* text);

}  // namespace snowflake::lease
