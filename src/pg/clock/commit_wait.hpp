// Implements snowflake.commit_wait. A transaction that minted commits only when all servers mint
// greater ids, provided that their clock errors are within snowflake.max_clock_error. So a session
// that sees the commit mints greater ids on any server.
//
// The time in an id is the time of a server's clock C, whose error is at most e. When C - e is
// after the end of the id's tick, the true time is also after the end. Let the clock of another
// server be behind the true time by at most e'. When C - e - e' is after the end of the tick, the
// clock of that server is also after the end. So the wait includes e and e'.
#pragma once

namespace snowflake::pg {

// Called before COMMIT and PREPARE TRANSACTION. Interruptible. If the clock is not synchronized, or
// the wait would be longer than max_wait, this function raises an error. The error ends the
// transaction.
void wait_before_commit();

}  // namespace snowflake::pg
