// Implements "snowflake.commit_wait". A transaction that minted ids waits before its commit until
// all servers mint greater ids. If a session sees rows of a committed transaction, the session
// mints ids greater than the transaction's ids, on any server. The setting
// "snowflake.max_clock_error" must be at least as large as the clock error of each server.
//
// Before a commit, a session waits until its clock has passed the end of the tick (time unit) of
// the transaction's greatest id. To allow for inaccurate clocks, the session prolongs the wait by
// the maximum error of its own clock plus "snowflake.max_clock_error".
#pragma once

namespace snowflake::pg {

// wait_before_commit() is called before COMMIT and PREPARE TRANSACTION. The wait can be cancelled.
// Raises an error if the clock is not synchronized or the wait would exceed "snowflake.max_wait".
// The error aborts the transaction.
void wait_before_commit();

}  // namespace snowflake::pg
