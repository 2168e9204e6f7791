// The part of CREATE EXTENSION that its script cannot do.
#pragma once

namespace snowflake::pg {

// Before a commit: says what the transaction has sealed. At its end: forgets it.
void announce_seal();
void forget_new_seal();

}  // namespace snowflake::pg
