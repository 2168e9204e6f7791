// Contains for each blocker (state that prevents minting) the error, the reason in the view
// `health`, the hint, and the counter of refused calls.
#pragma once

#include "core/blocker.hpp"
#include "pg/errors/cause.hpp"

namespace snowflake::pg {

struct RefusalText {
  Blocker blocker;
  Cause cause;
  int sqlstate;
  const char* message;  // %s is replaced by `subject`
  const char* reason;   // text in the view `health`; null if the error affects only one call
  const char* hint;
};

const RefusalText& text_of(Blocker blocker);

// Installs the function that counts refused calls, and that writes a log message when refusals
// begin.
void install_refusal_counter(void (*counter)(Blocker));

// Raises the error that RefusalText defines for `blocker`, and increments the counter of refused
// calls. The argument `subject` replaces %s in the message, and is null if the message has no %s.
// `detail` contains the measured values.
[[noreturn]] void refuse(Blocker blocker, const char* subject, const char* detail);
// This overload of refuse() takes a hint that contains measured values, instead of the fixed hint
// in RefusalText.
[[noreturn]] void refuse(Blocker blocker, const char* subject, const char* detail,
                         const char* hint);

}  // namespace snowflake::pg
