// The extension's own sequences in the current database.
#pragma once

#include "pg/postgres.hpp"

namespace snowflake::pg {

struct Members {
  Oid high_water;
  Oid seal;
  Oid seal_here;

  bool complete() const {
    return OidIsValid(high_water) && OidIsValid(seal) && OidIsValid(seal_here);
  }
};

// Found by extension membership, for a name alone could be anybody's. An error where the extension,
// or one of them, is missing.
Members find_members();

// Whether this transaction has dropped an extension that others may still come to see again.
bool dropped_in_this_transaction();

}  // namespace snowflake::pg
