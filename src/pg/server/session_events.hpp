// The end of a transaction, and changes of relations: a registry of who wants to hear of them.
#pragma once

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct SessionEvents {
  void (*before_commit)();            // or PREPARE; may raise an error
  void (*at_end)();                   // of a transaction, however it ends
  void (*relation_changed)(Oid oid);  // dropped, altered or created; InvalidOid: any
  void (*before_prepare)();           // after before_commit; may raise an error
};

// At server start. Called in the order in which they were registered; a null is nobody.
void register_session_events(const SessionEvents& events);

// Before a session remembers anything that an event is to make it forget.
void watch_session_events();

}  // namespace snowflake::pg
