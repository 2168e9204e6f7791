// One exchange with a host of the lease server: connect, ask, read to the end, close.
//
// Nonblocking libpq, with the server's latch. A connection of its own for each exchange: an answer
// that comes late is never read, and what a firewall does to idle connections does not matter.
//
// An answer counts when everything was read. Rows come before the COMMIT, which may fail; and the
// wait of the COMMIT for a synchronous standby may be cancelled, after which it is reported as
// done, with a warning: that is no answer. Other warnings are for the log. Nothing is ever
// cancelled from here.
#pragma once

#include "hosts.hpp"

namespace snowflake::lease {

inline constexpr int kColumns = 10;

// Texts are cut to fit; there is nothing to free.
struct Exchange {
  bool answered;
  char column[kColumns][400];
  bool null[kColumns];
  char failure[512];  // why it was not answered
};

// Asks `query` with `count` parameters, of the host whose turn it is. Gives up after `timeout_ms`,
// beside what a connect_timeout and the look-up of a name may take, or, if `may_stop`, when the
// worker is to end. If not, `timeout_ms` is for all.
void ask(const char* conninfo, const char* query, int count, const char* const* parameters,
         int timeout_ms, bool may_stop, Exchange* exchange);

// The lease server's encoding need not be that of the databases here, and texts were cut.
void make_ascii(char* text);

// After an error that cut ask() short.
void hang_up();

// For people: the host that was asked last.
const char* asked_host();

// Whether the host that last let us in is this very server.
bool is_own_server();

}  // namespace snowflake::lease
