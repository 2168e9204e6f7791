// An exchange with the lease server connects, sends a request, reads all results and disconnects.
//
// Each exchange with the lease server uses its own connection. A new connection never receives a
// late answer to an earlier request. The lease worker does not keep idle connections open.
//
// The lease worker uses an answer only after the COMMIT of the lease server's transaction has
// succeeded. The lease worker discards an answer if the lease server's wait for a synchronous
// standby was cancelled. All other warnings are logged. The lease worker never cancels a query.
#pragma once

#include "hosts.hpp"

namespace snowflake::lease {

inline constexpr int kColumns = 10;

// The result of a request to the lease server. Texts that do not fit into the arrays `column` and
// `failure` are cut.
struct Exchange {
  bool answered;
  char column[kColumns][400];
  bool null[kColumns];
  char failure[512];  // why the lease server did not answer
};

// Sends `query` with `count` parameters to the lease server. If the connection string `conninfo`
// lists several hosts, ask() connects only to the host that find_target() chooses. If `may_stop` is
// true, a shutdown request ends ask() early, and `timeout_ms` does not include the time to connect.
// If `may_stop` is false, `timeout_ms` also includes the look-up of the host name and connecting.
void ask(const char* conninfo, const char* query, int count, const char* const* parameters,
         int timeout_ms, bool may_stop, Exchange* exchange);

// Replaces bytes that are not ASCII. The lease server can have another encoding, and a long text
// may have been cut inside a character.
void make_ascii(char* text);

// Closes the connection. hang_up() must be called after an error inside ask().
void hang_up();

// Returns the host of the last request as text, for messages.
const char* asked_host();

// Returns true if the last connection to the lease server was a connection to this server itself.
bool is_own_server();

}  // namespace snowflake::lease
