// The part of CREATE EXTENSION that an SQL script cannot do.
#pragma once

namespace snowflake::pg {

// Called before a commit: sends the notice about a new seal. Called at the end of the transaction:
// resets the state.
void report_seal();
void reset_new_seal();

}  // namespace snowflake::pg
