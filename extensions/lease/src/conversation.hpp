// Sends requests for leases to the lease server by SQL, and reads the answers from the resulting
// rows.
#pragma once

#include "connection.hpp"

namespace snowflake::lease {

struct Reply {
  bool answered;
  LeaseAnswer answer;
  int64_t fleet;
  int64_t sent_ms;
  int64_t received_ms;
  char detail[512];  // the error, or the message in the lease server's answer
};

void converse(const pg::LeasePort& port, const LeaseRequest& request, int timeout_ms, bool may_stop,
              Reply* reply);

}  // namespace snowflake::lease
