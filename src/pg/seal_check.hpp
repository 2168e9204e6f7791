// The seal: the layout, tick and epoch that this database's ids have for ever.
//
// There are two values: what CREATE EXTENSION sealed here, and what a dump brings. They and the
// server's settings must all agree, or every function refuses: a dump restores its rows before its
// sequences, so rows restored under another layout have been decoded wrongly by the time the dump's
// seal arrives, and going on with either layout would hide that.
#pragma once

#include "pg/members.hpp"
#include "pg/session.hpp"

namespace snowflake::pg {

// Raises the error that fits where the seal of `members` is not that of the settings. False where a
// member has been dropped meanwhile: look them up again.
bool check_seal(const Members& members);

// The same question for a caller that must not block or fail: false only where a contradiction was
// seen. A seal that is locked is being dropped, not changed.
bool seal_still_holds(const Members& members);

// Whether somebody found the seal of this database good within the last second, and who says so.
bool seal_checked_lately(const Slot& slot);
void note_seal_checked(Slot& slot);

// For the functions that do not mint: checks once a transaction, and in fact once a second where
// the database mints too.
void require_seal_slowly();
inline void require_seal() {
  if (!session.sealed) [[unlikely]]
    require_seal_slowly();
}

}  // namespace snowflake::pg
