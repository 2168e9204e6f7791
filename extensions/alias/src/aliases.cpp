// The SQL functions.
//
// An alias is version * 2^63 + the permuted id, in base62: 5 * 2^63 numbers of the 62^11 that
// eleven characters have. So the version that made an alias is known before any key is tried. A
// token is a block of 128 bits, in base62; which version made it is found by trying, for only that
// one opens it.

#include "core/base62_wide.hpp"
#include "errors.hpp"
#include "key_ring.hpp"
#include "pg/server/datum.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::alias {

namespace {

using pg::new_text;
using pg::text_view;

constexpr size_t kTokenLength = 22;
constexpr Uint128 kGreatestAlias = (Uint128{kVersions} << 63) - 1;
constexpr Uint128 kGreatestToken = ~Uint128{0};

static_assert([] {
  Uint128 reach = 1;
  for (size_t i = 0; i < kBase62Length; ++i) reach *= 62;
  return reach > kGreatestAlias && reach < kGreatestAlias + (Uint128{1} << 63);
}());

constexpr Form kAliasForm = {
    "an alias", "It is written in 11 characters 0-9, A-Z and a-z, 00000000000 to swhhx2kPhsd.",
    "snowflake.alias(id, key_name)"};
constexpr Form kTokenForm = {"a token", "It is written in 22 characters 0-9, A-Z and a-z.",
                             "snowflake.token(id, key_name)"};

uint64_t checked_id(int64_t id) {
  if (id < 0) error_negative_id(id);
  return static_cast<uint64_t>(id);
}

Key& writing_key(std::string_view name) {
  Key* const key = current_keys().writing(name);
  if (key == nullptr) error_no_such_key(name);
  return *key;
}

Uint128 read(std::string_view encoded, size_t length, Uint128 greatest, const Form& form) {
  const auto parsed = read_base62_wide(encoded, length, greatest);
  if (parsed.error != NumeralError::none) error_written(form, parsed.error, parsed.at, encoded);
  return parsed.value;
}

}  // namespace

SF_SQL_FUNCTION(alias) {
  const uint64_t id = checked_id(PG_GETARG_INT64(0));
  Key& key = writing_key(text_view(PG_GETARG_TEXT_PP(1)));
  uint64_t permuted = 0;
  if (!cipher_of(key).permute_id(id, &permuted)) error_cipher();
  text* const result = new_text(kBase62Length);
  write_base62_wide((Uint128{key.version} << 63) + permuted, VARDATA(result), kBase62Length);
  PG_RETURN_TEXT_P(result);
}

SF_SQL_FUNCTION(from_alias) {
  const auto name = text_view(PG_GETARG_TEXT_PP(1));
  Key& writing = writing_key(name);
  const Uint128 value =
      read(text_view(PG_GETARG_TEXT_PP(0)), kBase62Length, kGreatestAlias, kAliasForm);
  const auto version = static_cast<unsigned>(value >> 63);
  Key* const key = writing.version == version ? &writing : current_keys().version_of(name, version);
  if (key == nullptr) error_no_such_version(version, name);
  uint64_t id = 0;
  if (!cipher_of(*key).unpermute_id(static_cast<uint64_t>(value) & kGreatestId, &id))
    error_cipher();
  PG_RETURN_INT64(static_cast<int64_t>(id));
}

SF_SQL_FUNCTION(token) {
  const uint64_t id = checked_id(PG_GETARG_INT64(0));
  Key& key = writing_key(text_view(PG_GETARG_TEXT_PP(1)));
  uint8_t block[16];
  if (!cipher_of(key).encipher(id, block)) error_cipher();
  Uint128 value = 0;
  for (const uint8_t byte : block) value = value << 8 | byte;
  text* const result = new_text(kTokenLength);
  write_base62_wide(value, VARDATA(result), kTokenLength);
  PG_RETURN_TEXT_P(result);
}

SF_SQL_FUNCTION(from_token) {
  const auto name = text_view(PG_GETARG_TEXT_PP(1));
  writing_key(name);  // the key's name is wrong, not the token
  Uint128 value = read(text_view(PG_GETARG_TEXT_PP(0)), kTokenLength, kGreatestToken, kTokenForm);
  uint8_t block[16];
  for (size_t i = sizeof(block); i-- > 0; value >>= 8) block[i] = static_cast<uint8_t>(value);

  const KeyRing& keys = current_keys();
  for (int i = 0; i < keys.count; ++i) {
    if (!keys.keys[i].is_called(name)) continue;
    uint64_t id = 0;
    switch (cipher_of(keys.keys[i]).decipher(block, &id)) {
      case Cipher::Opened::authentic:
        PG_RETURN_INT64(static_cast<int64_t>(id));
      case Cipher::Opened::forged:
        break;
      case Cipher::Opened::failed:
        error_cipher();
    }
  }
  error_not_authentic(name);
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
