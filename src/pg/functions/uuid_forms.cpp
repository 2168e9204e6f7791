// A ULID is another text form of the 128 bits of a UUID.

#include "pg/server/datum.hpp"
#include "pg/errors/errors.hpp"
#include "pg/errors/errors_outside.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr TextForm kUlidForm = {"ULID",
                                "The text has 26 characters 0-9 and A-Z without I, L, O and U. The "
                                "first character is at most 7. Hyphens are ignored.",
                                "snowflake.to_ulid(id)", 0};

Wide uuid_of_argument(int64_t id) {
  require_seal();
  const auto bits = static_cast<uint64_t>(id);
  if (id < 0 || !layout.contains(bits)) [[unlikely]]
    error_foreign_id(id);
  if (!fits_uuid(layout, bits)) [[unlikely]]
    error_no_uuid_for(id);
  return uuid_of(layout, bits);
}

// The first byte of pg_uuid_t is the most significant byte.
void store(Wide value, unsigned char* bytes) {
  const uint64_t words[2] = {pg_hton64(value.high), pg_hton64(value.low)};
  memcpy(bytes, words, UUID_LEN);
}

Wide load(const unsigned char* bytes) {
  uint64_t words[2];
  memcpy(words, bytes, UUID_LEN);
  return {pg_ntoh64(words[0]), pg_ntoh64(words[1])};
}

}  // namespace

SF_SQL_FUNCTION(to_uuid) {
  const Wide value = uuid_of_argument(PG_GETARG_INT64(0));
  const auto uuid = static_cast<pg_uuid_t*>(palloc(sizeof(pg_uuid_t)));
  store(value, uuid->data);
  PG_RETURN_UUID_P(uuid);
}

SF_SQL_FUNCTION(from_uuid) {
  require_seal();
  const auto parsed = id_of_uuid(layout, load(PG_GETARG_UUID_P(0)->data));
  if (parsed.error != UuidError::none) [[unlikely]]
    error_foreign_uuid("UUID", DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0))),
                       "snowflake.to_uuid(id)", parsed.error);
  PG_RETURN_INT64(static_cast<int64_t>(parsed.id));
}

SF_SQL_FUNCTION(to_ulid) {
  const Wide value = uuid_of_argument(PG_GETARG_INT64(0));
  text* const result = new_text(kUlidLength);
  write_ulid(value, VARDATA(result));
  PG_RETURN_TEXT_P(result);
}

SF_SQL_FUNCTION(from_ulid) {
  require_seal();
  const auto ulid = text_view(PG_GETARG_TEXT_PP(0));
  const auto read = read_ulid(ulid);
  if (read.error != NumeralError::none) [[unlikely]]
    error_numeral(kUlidForm, read.error, read.at, ulid);
  const auto parsed = id_of_uuid(layout, read.value);
  if (parsed.error != UuidError::none) [[unlikely]] {
    char written[kUlidLength];
    write_ulid(read.value, written);
    error_foreign_uuid("ULID", pnstrdup(written, kUlidLength), "snowflake.to_ulid(id)",
                       parsed.error);
  }
  PG_RETURN_INT64(static_cast<int64_t>(parsed.id));
}

}  // namespace snowflake::pg
