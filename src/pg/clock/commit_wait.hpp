// Implements "snowflake.commit_wait". A transaction that minted ids waits before its commit until
// all servers mint greater ids. A session that sees rows of a committed transaction therefore mints
// greater ids on any server. The setting "snowflake.max_clock_error" must be at least as large as
// the clock error of each server.
//
// Let C be the clock of this server, e its maximum error, and e' the maximum error of the clock of
// another server. When C - e is after the end of an id's tick (time unit), the true time is also
// after the end of the tick. The clock of the other server is behind the true time by at most e'.
// When C - (e + e') is after the end of the tick, the clock of the other server is also after the
// end. The wait before a commit therefore includes the errors of both clocks, e + e'.
#pragma once

namespace snowflake::pg {

// wait_before_commit() is called before COMMIT and PREPARE TRANSACTION. The wait can be cancelled.
// Raises an error if the clock is not synchronized or the wait would exceed "snowflake.max_wait".
// The error aborts the transaction.
void wait_before_commit();

}  // namespace snowflake::pg
