// Implements snowflake.commit_wait. A transaction that minted commits only when all servers mint
// greater ids, provided that their clock errors are within snowflake.max_clock_error. So a session
// that sees the commit mints greater ids on any server.
//
// An id has the time of its server's clock C, whose error is at most e. When C - e is after the end
// of the id's tick, the true time is after it too. When C - e - e' is after the end of the tick,
// the clock of another server is after it too, if that clock is behind the true time by at most e'.
// So the wait includes e and e'.
#pragma once

namespace snowflake::pg {

// Called before COMMIT and PREPARE TRANSACTION. Interruptible. If the clock is not synchronized, or
// the wait would be longer than max_wait, this raises an error, which ends the transaction.
void wait_before_commit();

}  // namespace snowflake::pg
