// The table of refusals: for each obstacle the error, what `health` says, the one action that
// helps, and as what it is counted.
#pragma once

#include "core/obstacle.hpp"
#include "pg/errors/cause.hpp"

namespace snowflake::pg {

struct RefusalText {
  Obstacle obstacle;
  Cause cause;          // as which it is counted
  int sqlstate;         // of the error
  const char* message;  // likewise; %s is what it is about. Null where no call fails for it.
  const char* reason;   // for health, in a few words; null for what concerns single calls
  const char* hint;     // of error, log and health
};

const RefusalText& text_of(Obstacle obstacle);

// At server start: what counts refusals, and says in the log that they have begun.
void install_refusal_counter(void (*counter)(Obstacle));

// Counts the refusal and raises the error. `subject`: for the message, null where it names none;
// `detail`: with the numbers.
[[noreturn]] void refuse(Obstacle obstacle, const char* subject, const char* detail);
// The same with an action that depends on the numbers.
[[noreturn]] void refuse(Obstacle obstacle, const char* subject, const char* detail,
                         const char* hint);

}  // namespace snowflake::pg
