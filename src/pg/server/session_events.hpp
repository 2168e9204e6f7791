#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct SessionEvents {
  void (*before_commit)();  // called before COMMIT or PREPARE; may raise an error
  void (*at_end)();         // called at each end of a transaction
  // Called after a relation was created, altered or dropped. InvalidOid means any relation.
  void (*relation_changed)(Oid oid);
  void (*before_prepare)();  // called after before_commit; may raise an error
};

// Callbacks run in the order of registration. A null callback is skipped.
void register_session_events(const SessionEvents& events);

// REQUIRES a call before the session caches a state that a callback must reset.
void install_session_events();

}  // namespace snowflake::pg
