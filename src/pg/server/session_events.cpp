#include "pg/server/session_events.hpp"

namespace snowflake::pg {

namespace {

constexpr int kMostListeners = 8;
constinit SessionEvents registered[kMostListeners]{};
constinit int count = 0;

template <class Handler, class... Arguments>
void call(Handler SessionEvents::*handler, Arguments... arguments) {
  for (int i = 0; i < count; ++i)
    if (registered[i].*handler != nullptr) (registered[i].*handler)(arguments...);
}

void on_transaction_end(XactEvent event, void*) {
  switch (event) {
    case XACT_EVENT_PRE_COMMIT:
      return call(&SessionEvents::before_commit);
    case XACT_EVENT_PRE_PREPARE:
      call(&SessionEvents::before_commit);
      return call(&SessionEvents::before_prepare);
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_PARALLEL_COMMIT:
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PARALLEL_ABORT:
    case XACT_EVENT_PREPARE:
      return call(&SessionEvents::at_end);
    default:
      return;
  }
}

void on_relation_change(Datum, Oid oid) {
  call(&SessionEvents::relation_changed, oid);
}

}  // namespace

void register_session_events(const SessionEvents& events) {
  if (count == kMostListeners)
    elog(ERROR, "too many callback functions are registered for the session");
  registered[count++] = events;
}

void install_session_events() {
  static constinit bool watching = false;
  if (watching) return;
  RegisterXactCallback(on_transaction_end, nullptr);
  CacheRegisterRelcacheCallback(on_relation_change, Datum{0});
  watching = true;
}

}  // namespace snowflake::pg
