#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct SessionEvents {
  void (*before_commit)();  // may raise an error
  void (*at_end)();         // at COMMIT, ROLLBACK or PREPARE
  // The callback relation_changed() runs after a relation was created, altered or dropped. If the
  // argument of the callback is InvalidOid, any relation may have changed.
  void (*relation_changed)(Oid oid);
  void (*before_prepare)();  // may raise an error
};

// The registered callbacks run in the order of registration. A callback that is a null pointer is
// not called.
void register_session_events(const SessionEvents& events);

// install_session_events() must be called before a session caches data that one of the callbacks
// resets.
void install_session_events();

}  // namespace snowflake::pg
