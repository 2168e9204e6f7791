// Says what CREATE EXTENSION has sealed, when that is committed: while the extension's script runs,
// PostgreSQL keeps notices back.
#pragma once

namespace snowflake::pg {

void announce_seal_at_commit();

// Before a commit, and at the end of a transaction.
void announce_seal();
void forget_new_seal();

}  // namespace snowflake::pg
