// Messages of the lease worker, for the view snowflake.lease and for the server's log.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

// Functions of the library snowflake that the library snowflake_lease calls.
extern const pg::LeasePort* port;

// Columns of the view snowflake.lease that the lease worker fills.
extern pg::LeaseReport report;

// Returns a time in UTC as text, so that the logs of two servers can be compared. The returned text
// is valid until the next call.
const char* time_text(int64_t ms);

// Changes the message in the view snowflake.lease, but does not write to the log.
void set_message(const char* text);

// Changes the message in the view snowflake.lease, and logs the message. The first message after a
// failure has at least the log level LOG, so that the log shows the end of the failure.
void log_event(int level, const char* text);

// Changes the message in the view snowflake.lease. Logs a failure of the lease worker as a warning,
// but only once a minute for failures of the same kind. Two failures are of the same kind if their
// messages differ only in numbers.
void log_failure(const char* text);

// Logs a notice of the lease server, but each kind of notice only once.
void log_remark(const char* text);

}  // namespace snowflake::lease
