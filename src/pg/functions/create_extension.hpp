// The part of CREATE EXTENSION that an SQL script cannot do.
#pragma once

namespace snowflake::pg {

// Before a commit, sends the notice of a new seal. At its end, resets the state.
void report_seal();
void reset_new_seal();

}  // namespace snowflake::pg
