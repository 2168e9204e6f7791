// Messages of the worker: to the view snowflake.lease, and to the server's log where it is news
// there.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

// The generator's library, as it offers itself; null before start.
extern const pg::LeasePort* port;

// The view's row, but for what the generator's library knows itself. set_message() and what follows
// it publish it.
extern pg::LeaseReport report;

// In UTC, whatever the log's time zone: two servers' logs are compared. Good until the next call.
const char* time_text(int64_t ms);

// For the view alone.
void set_message(const char* text);

// What was wrong is over: into the log at `level`, as LOG at least where it has told of trouble.
void log_event(int level, const char* text);

// Something is wrong, and is tried again: into the log at once where it is of another kind than
// what is there, else once a minute. The kind is the text without its numbers.
void log_failure(const char* text);

// The lease server has said something beside an answer that counts: into the log, each kind
// once.
void log_remark(const char* text);

}  // namespace snowflake::lease
