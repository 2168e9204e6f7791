// Text forms of ids do not depend on the layout, so the functions of this file do not check the
// stored layout (seal).

#include "pg/server/datum.hpp"
#include "pg/errors/errors_outside.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

constexpr TextForm kBase62Form = {
    "base62 id", "The text has 11 characters 0-9, A-Z and a-z, from 00000000000 to AzL8n0Y58m7.",
    "snowflake.to_base62(id)", kBase62Length};
constexpr TextForm kBase32Form = {"base32 id",
                                  "The text has 13 characters 0-9 and A-Z without I, L, O and U, "
                                  "from 0000000000000 to 7ZZZZZZZZZZZZ. Hyphens are ignored.",
                                  "snowflake.to_base32(id)", kBase32Length};
constexpr TextForm kCheckedBase32Form = {
    "base32 id with a check symbol",
    "The text has 13 characters 0-9 and A-Z without I, L, O and U, from 0000000000000 to "
    "7ZZZZZZZZZZZZ. A check symbol follows, which can also be one of *~$=U. Hyphens are ignored.",
    "snowflake.to_base32(id, true)", kBase32Length + 1};

uint64_t checked_id(int64_t id) {
  if (id < 0) [[unlikely]]
    error_negative_id(id);
  return static_cast<uint64_t>(id);
}

int64_t checked(const ParsedNumeral& parsed, const TextForm& form, std::string_view encoded) {
  if (parsed.error != NumeralError::none) [[unlikely]]
    error_numeral(form, parsed.error, parsed.at, encoded);
  return static_cast<int64_t>(parsed.value);
}

}  // namespace

SF_SQL_FUNCTION(to_base62) {
  const uint64_t id = checked_id(PG_GETARG_INT64(0));
  text* const result = new_text(kBase62Length);
  write_base62(id, VARDATA(result));
  PG_RETURN_TEXT_P(result);
}

SF_SQL_FUNCTION(from_base62) {
  const auto encoded = text_view(PG_GETARG_TEXT_PP(0));
  PG_RETURN_INT64(checked(read_base62(encoded), kBase62Form, encoded));
}

SF_SQL_FUNCTION(to_base32) {
  const uint64_t id = checked_id(PG_GETARG_INT64(0));
  const bool check_symbol = PG_GETARG_BOOL(1);
  text* const result = new_text(kBase32Length + check_symbol);
  write_base32(id, VARDATA(result));
  if (check_symbol) VARDATA(result)[kBase32Length] = base32_check_symbol(id);
  PG_RETURN_TEXT_P(result);
}

SF_SQL_FUNCTION(from_base32) {
  const auto encoded = text_view(PG_GETARG_TEXT_PP(0));
  const bool check_symbol = PG_GETARG_BOOL(1);
  PG_RETURN_INT64(checked(read_base32(encoded, check_symbol),
                          check_symbol ? kCheckedBase32Form : kBase32Form, encoded));
}

}  // namespace snowflake::pg
