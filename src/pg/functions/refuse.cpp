// refuse() raises an error for a function in SQL or PL/pgSQL, without CONTEXT lines. RAISE in
// PL/pgSQL would add a CONTEXT line for each internal function.

#include "pg/errors/errors_routing.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

SF_SQL_FUNCTION(refuse) {
  const char* texts[4];
  for (int i = 0; i < 4; ++i)
    texts[i] = PG_ARGISNULL(i) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(i));
  const auto [state, message, detail, hint] = texts;
  if (message == nullptr) PG_RETURN_VOID();
  error_of_routine(state, message, detail, hint);
}

}  // namespace snowflake::pg
