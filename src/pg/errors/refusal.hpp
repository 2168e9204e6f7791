// The table of refusals contains the error, the reason in `health`, the hint and the counter of
// each blocker.
#pragma once

#include "core/blocker.hpp"
#include "pg/errors/cause.hpp"

namespace snowflake::pg {

struct RefusalText {
  Blocker blocker;
  Cause cause;  // the counter that the refusal increments
  int sqlstate;
  const char* message;  // null: no call fails; %s is `subject` of refuse()
  const char* reason;   // for health, in a few words; null: only single calls fail
  const char* hint;     // of error, log and health
};

const RefusalText& text_of(Blocker blocker);

// Installs the function that counts refusals and logs the first refusal of a series.
void install_refusal_counter(void (*counter)(Blocker));

// Counts the refusal and raises the error. `subject` is inserted into the message, and is null if
// the message has no %s. `detail` contains the measured values.
[[noreturn]] void refuse(Blocker blocker, const char* subject, const char* detail);
// The hint is passed if the action depends on the measured values.
[[noreturn]] void refuse(Blocker blocker, const char* subject, const char* detail,
                         const char* hint);

}  // namespace snowflake::pg
