#include "pg/checks/read_only.hpp"

#include <optional>

#include "pg/server/database_settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

bool is_read_only_by_default() {
  constexpr char kName[] = "default_transaction_read_only";
  std::optional<bool> of_database;
  std::optional<bool> of_all;
  for_each_database_setting(kName, [&](Oid database, const char* text) {
    bool value = false;
    if (!parse_bool(text, &value)) return;
    if (database == MyDatabaseId) of_database = value;
    if (!OidIsValid(database)) of_all = value;
  });
  if (of_database) return *of_database;
  return of_all ? *of_all : is_on_for_all(kName, PGC_S_ARGV);
}

}  // namespace snowflake::pg
