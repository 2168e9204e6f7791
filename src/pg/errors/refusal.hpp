// The table of refusals: for each blocker the error, the reason in `health`, the hint, and the
// counter.
#pragma once

#include "core/blocker.hpp"
#include "pg/errors/cause.hpp"

namespace snowflake::pg {

struct RefusalText {
  Blocker blocker;
  Cause cause;          // the counter that the refusal increments
  int sqlstate;         // of the error
  const char* message;  // of the error, %s is `subject` of refuse(); null: no call fails
  const char* reason;   // for health, in a few words; null if the blocker fails only single calls
  const char* hint;     // of error, log and health
};

const RefusalText& text_of(Blocker blocker);

// Called at server start, with the function that counts refusals and logs the beginning of
// refusals.
void install_refusal_counter(void (*counter)(Blocker));

// Counts the refusal and raises the error. `subject` is inserted into the message. `subject` is
// null if the message has no %s. `detail` contains the measured values.
[[noreturn]] void refuse(Blocker blocker, const char* subject, const char* detail);
// Also passes a hint, for an action that depends on the measured values.
[[noreturn]] void refuse(Blocker blocker, const char* subject, const char* detail,
                         const char* hint);

}  // namespace snowflake::pg
