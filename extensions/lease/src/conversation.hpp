// Writes the requests of a server to its lease server in SQL, and reads the answers.
#pragma once

#include "connection.hpp"

namespace snowflake::lease {

struct Reply {
  bool answered;
  LeaseAnswer answer;
  int64_t fleet;
  int64_t sent_ms;
  int64_t received_ms;
  char detail[512];  // the error, or a message that came with the answer
};

void converse(const pg::LeasePort& port, const LeaseRequest& request, int timeout_ms, bool may_stop,
              Reply* reply);

}  // namespace snowflake::lease
