// One exchange with a host of the lease server: connects, sends a request, reads all results and
// closes the connection.
//
// The exchange uses nonblocking libpq and the server's latch. Each exchange opens and closes its
// connection. So a late answer is never read, and firewalls that drop idle connections do no harm.
//
// An answer is used only after all results were read. The row of the answer comes before the
// COMMIT, and the COMMIT may fail. If the COMMIT's wait for a synchronous standby is cancelled, a
// warning comes with the answer. The worker then discards the answer. All other warnings go to the
// log. The worker never cancels a query.
#pragma once

#include "hosts.hpp"

namespace snowflake::lease {

inline constexpr int kColumns = 10;

// Texts are cut to fit.
struct Exchange {
  bool answered;
  char column[kColumns][400];
  bool null[kColumns];
  char failure[512];  // why the request was not answered
};

// Sends `query` with `count` parameters to the next host of the round. If `may_stop` is set, the
// exchange ends when the worker must end, or after `timeout_ms`. The limit `timeout_ms` does not
// include the time for the look-up of a name and for connecting. If `may_stop` is not set, the
// limit includes the time for the look-up and for connecting.
void ask(const char* conninfo, const char* query, int count, const char* const* parameters,
         int timeout_ms, bool may_stop, Exchange* exchange);

// Replaces invalid bytes. Invalid bytes have two causes. The lease server can have another encoding
// than the databases of this server, or a long text was cut inside a character.
void make_ascii(char* text);

// Closes the connection after an error inside ask().
void hang_up();

// Returns the host of the last request, as text for messages.
const char* asked_host();

// Returns true if this server is the host that last accepted a connection.
bool is_own_server();

}  // namespace snowflake::lease
