// Commit wait: with snowflake.commit_wait, a transaction that minted commits only when no server
// whose clock error is within snowflake.max_clock_error can mint an id that is not greater. So
// whoever has seen the commit mints above it, wherever.
//
// An id has the time of its server's clock C, whose error is at most e. Once C - e is past the end
// of the id's tick, the true time is; a server whose clock is behind the true time by e' shows that
// tick over once C - e - e' is past it. So both errors are waited for.
#pragma once

namespace snowflake::pg {

// Before a commit or PREPARE TRANSACTION. Interruptible; raises an error, and so ends the
// transaction, where the clock is not synchronized or it would take longer than max_wait.
void wait_before_commit();

}  // namespace snowflake::pg
