// The SQL functions that encrypt ids as aliases, digits or tokens, and decrypt these texts. For an
// invalid text, a function from_...() raises an error, and try_from_...() returns NULL. A function
// that writes an alias puts the optional prefix in front, and a function that reads an alias
// requires the prefix.

#include "errors.hpp"
#include "forms.hpp"
#include "pg/server/datum.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::alias {

namespace {

using pg::new_text;
using pg::text_view;

constexpr Form kAlias = {
    "an alias",
    "An alias has 11 characters from 0-9, A-Z and a-z, and is 00000000000 to swhhx2kPhsd.",
    "snowflake.alias(id, key_name)"};
constexpr Form kToken = {"a token", "A token has 22 characters from 0-9, A-Z and a-z.",
                         "snowflake.token(id, key_name)"};

Form digits_form(unsigned length) {
  return {
      "digits",
      psprintf("The text must have %u digits. The first digit of the text must be 0 to 4.", length),
      "snowflake.digits(id, key_name, length)"};
}

uint64_t checked_id(int64_t id) {
  if (id < 0) error_negative_id(id);
  return static_cast<uint64_t>(id);
}

Key& writing_key(std::string_view name) {
  Key* const key = current_keys().writing(name);
  if (key == nullptr) error_no_such_key(name);
  return *key;
}

unsigned checked_length(int32_t length) {
  if (length < int32_t{kMinDigits} || length > int32_t{kMaxDigits})
    error_digits_length(length, kMinDigits, kMaxDigits);
  return static_cast<unsigned>(length);
}

// Returns the prefix argument, or an empty prefix. A prefix ends in "_" or "-", because encrypted
// ids never contain "_" or "-". In a text with a prefix, the last "_" or "-" is the end of the
// prefix.
constexpr size_t kMaxPrefix = 32;

std::string_view prefix_of(FunctionCallInfo fcinfo, int argument) {
  if (PG_NARGS() <= argument) return {};
  const auto prefix = text_view(PG_GETARG_TEXT_PP(argument));
  bool good = !prefix.empty() && prefix.size() <= kMaxPrefix &&
              (prefix.back() == '_' || prefix.back() == '-');
  for (const char c : prefix)
    good &=
        c == '_' || c == '-' ||
        snowflake::detail::kBase62.digits[static_cast<uint8_t>(c)] != snowflake::detail::kNoSymbol;
  if (!good) error_prefix(prefix, kMaxPrefix);
  return prefix;
}

text* new_prefixed(std::string_view prefix, size_t length, char** behind) {
  text* const result = new_text(prefix.size() + length);
  memcpy(VARDATA(result), prefix.data(), prefix.size());
  *behind = VARDATA(result) + prefix.size();
  return result;
}

[[noreturn]] void refuse(const Outcome& outcome, const Form& form, std::string_view encoded,
                         std::string_view name) {
  switch (outcome.reason) {
    case Reason::no_version:
      error_no_such_version(outcome.version, name);
    case Reason::forged:
      error_not_authentic(name);
    default:
      error_written(form, outcome.error, outcome.at, encoded);
  }
}

template <class Read>
Datum read_id(FunctionCallInfo fcinfo, int prefix_at, bool or_null, const Form& form, Read&& read) {
  const auto name = text_view(PG_GETARG_TEXT_PP(1));
  const auto prefix = prefix_of(fcinfo, prefix_at);
  writing_key(name);  // raises an error if the key file has no key with this name
  auto encoded = text_view(PG_GETARG_TEXT_PP(0));
  if (!encoded.starts_with(prefix)) {
    if (or_null) PG_RETURN_NULL();
    error_other_prefix(form, encoded, prefix);
  }
  encoded.remove_prefix(prefix.size());
  const Outcome outcome = read(encoded, name);
  if (outcome.reason == Reason::none) PG_RETURN_INT64(static_cast<int64_t>(outcome.id));
  if (or_null) PG_RETURN_NULL();
  refuse(outcome, form, encoded, name);
}

Datum digits_read(FunctionCallInfo fcinfo, bool or_null) {
  const unsigned length = checked_length(PG_GETARG_INT32(2));
  return read_id(fcinfo, 3, or_null, digits_form(length),
                 [&](std::string_view encoded, std::string_view name) {
                   return read_digits(encoded, name, length);
                 });
}

}  // namespace

SF_SQL_FUNCTION(alias) {
  const uint64_t id = checked_id(PG_GETARG_INT64(0));
  Key& key = writing_key(text_view(PG_GETARG_TEXT_PP(1)));
  char* out;
  text* const result = new_prefixed(prefix_of(fcinfo, 2), kAliasLength, &out);
  write_alias(key, id, out);
  PG_RETURN_TEXT_P(result);
}

SF_SQL_FUNCTION(from_alias) {
  return read_id(fcinfo, 2, false, kAlias, read_alias);
}

SF_SQL_FUNCTION(try_from_alias) {
  return read_id(fcinfo, 2, true, kAlias, read_alias);
}

SF_SQL_FUNCTION(digits) {
  const uint64_t id = checked_id(PG_GETARG_INT64(0));
  const unsigned length = checked_length(PG_GETARG_INT32(2));
  if (id >= power_of_ten(length - 1)) error_digits_id(id, length);
  Key& key = writing_key(text_view(PG_GETARG_TEXT_PP(1)));
  char* out;
  text* const result = new_prefixed(prefix_of(fcinfo, 3), length, &out);
  write_digits(key, id, length, out);
  PG_RETURN_TEXT_P(result);
}

SF_SQL_FUNCTION(from_digits) {
  return digits_read(fcinfo, false);
}

SF_SQL_FUNCTION(try_from_digits) {
  return digits_read(fcinfo, true);
}

SF_SQL_FUNCTION(token) {
  const uint64_t id = checked_id(PG_GETARG_INT64(0));
  Key& key = writing_key(text_view(PG_GETARG_TEXT_PP(1)));
  char* out;
  text* const result = new_prefixed(prefix_of(fcinfo, 2), kTokenLength, &out);
  write_token(key, id, out);
  PG_RETURN_TEXT_P(result);
}

SF_SQL_FUNCTION(from_token) {
  return read_id(fcinfo, 2, false, kToken, read_token);
}

SF_SQL_FUNCTION(try_from_token) {
  return read_id(fcinfo, 2, true, kToken, read_token);
}

SF_SQL_FUNCTION(alias_keys) {
  const KeyRing& keys = current_keys();
  const auto result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  InitMaterializedSRF(fcinfo, 0);
  for (int i = 0; i < keys.count; ++i) {
    const Key& key = keys.keys[i];
    char check_value[2 * sizeof(key.cipher.check_value) + 1];
    for (size_t k = 0; k < sizeof(key.cipher.check_value); ++k)
      snprintf(check_value + 2 * k, 3, "%02x", key.cipher.check_value[k]);
    Datum values[4] = {CStringGetTextDatum(key.name), Int32GetDatum(key.version),
                       BoolGetDatum(key.writes), CStringGetTextDatum(check_value)};
    bool nulls[4] = {};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
  }
  PG_RETURN_NULL();
}

}  // namespace snowflake::alias
