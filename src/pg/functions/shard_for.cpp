// shard_for(): a shard for keys that are no ids.

#include "pg/functions/shard_for.hpp"

#include "core/key_shard.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/errors/errors_routing.hpp"
#include "pg/server/datum.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

namespace {

int32_t shard_for_number(int64_t key) {
  return static_cast<int32_t>(shard_for(key, layout.shards()));
}

// Of the text in UTF-8, whatever the encoding of the database: a client that hashes what it sends
// finds the same shard, and so does another database.
int32_t shard_for_text(const text* key, Oid collation) {
  if (!OidIsValid(collation)) error_collation_unknown();
  if (!get_collation_isdeterministic(collation)) error_collation_nondeterministic(collation);
  const std::string_view bytes = text_view(key);
  char* const source = const_cast<char*>(bytes.data());
  const int length = static_cast<int>(bytes.size());
  const char* const utf8 = pg_server_to_any(source, length, PG_UTF8);
  const size_t converted = utf8 == source ? bytes.size() : strlen(utf8);
  return static_cast<int32_t>(shard_for(std::string_view{utf8, converted}, layout.shards()));
}

int32_t shard_for_uuid(const pg_uuid_t* key) {
  return static_cast<int32_t>(shard_for(key->data, layout.shards()));
}

}  // namespace

bool can_be_key(Oid type) {
  switch (getBaseType(type)) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case UUIDOID:
    case TEXTOID:
    case VARCHAROID:
      return true;
    default:
      return false;
  }
}

int32_t shard_for_key(Datum key, Oid type, Oid collation) {
  require_seal();
  switch (getBaseType(type)) {
    case INT2OID:
      return shard_for_number(DatumGetInt16(key));
    case INT4OID:
      return shard_for_number(DatumGetInt32(key));
    case INT8OID:
      return shard_for_number(DatumGetInt64(key));
    case UUIDOID:
      return shard_for_uuid(DatumGetUUIDP(key));
    default:
      return shard_for_text(DatumGetTextPP(key), collation);
  }
}

SF_SQL_FUNCTION(shard_for_number) {
  require_seal();
  PG_RETURN_INT32(shard_for_number(PG_GETARG_INT64(0)));
}

SF_SQL_FUNCTION(shard_for_uuid) {
  require_seal();
  PG_RETURN_INT32(shard_for_uuid(PG_GETARG_UUID_P(0)));
}

SF_SQL_FUNCTION(shard_for_text) {
  require_seal();
  PG_RETURN_INT32(shard_for_text(PG_GETARG_TEXT_PP(0), PG_GET_COLLATION()));
}

}  // namespace snowflake::pg
