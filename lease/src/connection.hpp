// One exchange with the control database: connect, ask, read to the end, close.
//
// Nonblocking libpq, with the server's latch. A connection of its own for each exchange: an answer
// that comes late is never read, and what a firewall does to idle connections does not matter.
//
// An answer counts when everything was read and nothing was said beside it. Rows come before the
// COMMIT, which may fail; and a warning may say that the wait for a synchronous standby was
// cancelled, after which the commit is reported as done. Nothing is ever cancelled from here.
#pragma once

#include "server.hpp"

namespace snowflake::lease {

inline constexpr int kColumns = 10;

// Texts are cut to fit; there is nothing to free.
struct Exchange {
  bool answered;
  char column[kColumns][400];
  bool null[kColumns];
  char failure[512];  // why it was not answered
};

// Asks `query` with `count` parameters. Gives up after `timeout_ms`, or, if `may_stop`, when the
// server shuts down.
void ask(const char* conninfo, const char* query, int count, const char* const* parameters,
         int timeout_ms, bool may_stop, Exchange* exchange);

}  // namespace snowflake::lease
