// One exchange with a host of the lease server: connect, ask, read to the end, close.
//
// It uses nonblocking libpq and the server's latch. Each exchange has a connection of its own. So a
// late answer is never read, and firewalls that drop idle connections do no harm.
//
// An answer counts when all of it was read, because rows come before the COMMIT, which may fail. If
// the wait of the COMMIT for a synchronous standby is cancelled, a warning comes with the answer,
// and the answer is discarded. Other warnings go to the log. The worker never cancels a query.
#pragma once

#include "hosts.hpp"

namespace snowflake::lease {

inline constexpr int kColumns = 10;

// Texts are cut to fit.
struct Exchange {
  bool answered;
  char column[kColumns][400];
  bool null[kColumns];
  char failure[512];  // why it was not answered
};

// Sends `query` with `count` parameters to the host whose turn it is. If `may_stop`, it gives up
// when the worker is to end, or after `timeout_ms` without the time for the look-up of a name and
// for the connection. Otherwise `timeout_ms` is the limit for all.
void ask(const char* conninfo, const char* query, int count, const char* const* parameters,
         int timeout_ms, bool may_stop, Exchange* exchange);

// The lease server's encoding need not be that of the databases here, and texts were cut.
void make_ascii(char* text);

// Closes the connection after an error inside ask().
void hang_up();

// Returns the host of the last request, as text for messages.
const char* asked_host();

// Returns true if the last host that accepted the connection is this server.
bool is_own_server();

}  // namespace snowflake::lease
