// A registry of callbacks for the end of a transaction and for changes of relations.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct SessionEvents {
  void (*before_commit)();  // before COMMIT or PREPARE; may raise an error
  void (*at_end)();         // at the end of each transaction, committed or not
  // A relation was dropped, altered or created. InvalidOid: any relation.
  void (*relation_changed)(Oid oid);
  void (*before_prepare)();  // after before_commit; may raise an error
};

// Called at server start. Callbacks run in the order of registration; a null is skipped.
void register_session_events(const SessionEvents& events);

// Called before a session caches a state that an event must reset.
void install_session_events();

}  // namespace snowflake::pg
