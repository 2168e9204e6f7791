#include "pg/cursor/settled_before.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/errors/errors.hpp"
#include "pg/server/datum.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

const char* text_of(HeldBy held_by) {
  switch (held_by) {
    case HeldBy::nothing:
      return nullptr;
    case HeldBy::transaction:
      return "an open transaction has minted ids";
    case HeldBy::prepared:
      return "a prepared transaction has minted ids";
    case HeldBy::one_snapshot:
      return "this transaction is REPEATABLE READ or SERIALIZABLE";
    case HeldBy::standby:
      return "the server is a standby";
    case HeldBy::mark:
      return "the high-water mark is locked, lost or not durable yet";
  }
  return nullptr;
}

// A command that locks the stored id layout (seal), such as DROP EXTENSION, also locks the
// high-water mark. If the stored layout is locked, ask() returns HeldBy::mark ("the high-water mark
// is locked").
SettledAnswer ask() {
  return try_require_seal() ? settled() : no_answer(HeldBy::mark);
}

}  // namespace

SF_SQL_FUNCTION(settled_before) {
  require_shared_state();
  const SettledAnswer answer = ask();
  if (answer.held_by == HeldBy::one_snapshot) error_one_snapshot();
  if (!answer.known) PG_RETURN_NULL();
  PG_RETURN_INT64(answer.id);
}

SF_SQL_FUNCTION(settled) {
  require_shared_state();
  const SettledAnswer answer = ask();
  const char* const reason = text_of(answer.held_by);
  Datum values[5] = {
      Int64GetDatum(answer.id),         reason == nullptr ? Datum{0} : CStringGetTextDatum(reason),
      Int32GetDatum(answer.pid),        TransactionIdGetDatum(answer.transaction),
      timestamp_datum(answer.since_ms),
  };
  bool nulls[5] = {!answer.known, reason == nullptr, answer.pid == 0,
                   !TransactionIdIsValid(answer.transaction), answer.since_ms == 0};
  PG_RETURN_DATUM(row_datum(fcinfo, values, nulls));
}

}  // namespace snowflake::pg
