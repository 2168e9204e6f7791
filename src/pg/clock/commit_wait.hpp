// Implements snowflake.commit_wait: a transaction that minted commits only when every server whose
// clock error is within snowflake.max_clock_error mints greater ids. So a session that has seen the
// commit mints greater ids on any server.
//
// An id has the time of its server's clock C, whose error is at most e. Once C - e is past the end
// of the id's tick, the true time is past it. The clock of a server that is behind the true time by
// e' is past it once C - e - e' is. So the wait includes both errors.
#pragma once

namespace snowflake::pg {

// Before a commit or PREPARE TRANSACTION. Interruptible. If the clock is not synchronized or the
// wait would be longer than max_wait, it raises an error and so ends the transaction.
void wait_before_commit();

}  // namespace snowflake::pg
