#include "pg/functions/shard_for.hpp"

#include "core/key_shard.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/errors/errors_routing.hpp"
#include "pg/server/datum.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

namespace {

uint32_t checked_shards(int64_t shards) {
  if (shards < 1 || shards > int64_t{layout.shards()}) error_shard_count(shards);
  return static_cast<uint32_t>(shards);
}

uint32_t shards_of_call(FunctionCallInfo fcinfo) {
  require_seal();
  return PG_NARGS() == 1 ? layout.shards() : checked_shards(PG_GETARG_INT32(1));
}

// Texts are hashed in UTF-8, so that clients and other databases compute the same shard for a text.
uint32_t shard_for_text(const text* key, Oid collation, uint32_t shards) {
  if (!OidIsValid(collation)) error_collation_unknown();
  require_deterministic(collation);
  const std::string_view bytes = text_view(key);
  char* const source = const_cast<char*>(bytes.data());
  const int length = static_cast<int>(bytes.size());
  const char* const utf8 = pg_server_to_any(source, length, PG_UTF8);
  const size_t converted = utf8 == source ? bytes.size() : strlen(utf8);
  return shard_for(std::string_view{utf8, converted}, shards);
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

void require_deterministic(Oid collation) {
  if (!get_collation_isdeterministic(collation)) error_collation_nondeterministic(collation);
}

int32_t shard_for_key(Datum key, Oid type, Oid collation, uint32_t shards) {
  require_seal();
  const auto of_number = [=](int64_t number) { return shard_for(number, shards); };
  const auto shard = [=] {
    switch (getBaseType(type)) {
      case INT2OID:
        return of_number(DatumGetInt16(key));
      case INT4OID:
        return of_number(DatumGetInt32(key));
      case INT8OID:
        return of_number(DatumGetInt64(key));
      case UUIDOID:
        return shard_for(DatumGetUUIDP(key)->data, shards);
      default:
        return shard_for_text(DatumGetTextPP(key), collation, shards);
    }
  };
  return static_cast<int32_t>(shard());
}

SF_SQL_FUNCTION(shard_for_number) {
  PG_RETURN_INT32(static_cast<int32>(shard_for(PG_GETARG_INT64(0), shards_of_call(fcinfo))));
}

SF_SQL_FUNCTION(shard_for_uuid) {
  const uint32_t shards = shards_of_call(fcinfo);
  PG_RETURN_INT32(static_cast<int32>(shard_for(PG_GETARG_UUID_P(0)->data, shards)));
}

SF_SQL_FUNCTION(shard_for_text) {
  const uint32_t shards = shards_of_call(fcinfo);
  PG_RETURN_INT32(
      static_cast<int32>(shard_for_text(PG_GETARG_TEXT_PP(0), PG_GET_COLLATION(), shards)));
}

}  // namespace snowflake::pg
