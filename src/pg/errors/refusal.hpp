// The table of refusals: for each blocker the error, the reason in `health`, the hint, and the
// counter.
#pragma once

#include "core/blocker.hpp"
#include "pg/errors/cause.hpp"

namespace snowflake::pg {

struct RefusalText {
  Blocker blocker;
  Cause cause;          // the counter that it increments
  int sqlstate;         // of the error
  const char* message;  // of the error; %s is its subject. Null if no call fails for it.
  const char* reason;   // for health, in a few words; null if it concerns single calls
  const char* hint;     // of error, log and health
};

const RefusalText& text_of(Blocker blocker);

// Called at server start, with the function that counts refusals and logs their beginning.
void install_refusal_counter(void (*counter)(Blocker));

// Counts the refusal and raises the error. `subject`: for the message, or null; `detail`: with the
// numbers.
[[noreturn]] void refuse(Blocker blocker, const char* subject, const char* detail);
// The same with an action that depends on the numbers.
[[noreturn]] void refuse(Blocker blocker, const char* subject, const char* detail,
                         const char* hint);

}  // namespace snowflake::pg
