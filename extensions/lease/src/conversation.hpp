// Translates requests to the lease server into SQL, and the resulting rows into answers.
#pragma once

#include "connection.hpp"

namespace snowflake::lease {

struct Reply {
  bool answered;
  LeaseAnswer answer;
  int64_t fleet;
  int64_t sent_ms;
  int64_t received_ms;
  char detail[512];  // the error, or a message of the answer
};

void converse(const pg::LeasePort& port, const LeaseRequest& request, int timeout_ms, bool may_stop,
              Reply* reply);

}  // namespace snowflake::lease
