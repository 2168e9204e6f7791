#include "forms.hpp"

#include "errors.hpp"

namespace snowflake::alias {

namespace {

constexpr Uint128 kGreatestAlias = (Uint128{kVersions} << 63) - 1;
constexpr Uint128 kGreatestToken = ~Uint128{0};

static_assert([] {
  Uint128 reach = 1;
  for (size_t i = 0; i < kAliasLength; ++i) reach *= 62;
  return reach > kGreatestAlias && reach < kGreatestAlias + (Uint128{1} << 63);
}());
static_assert(kVersions <= 10 && power_of_ten(kMaxDecimalDigits) > kGreatestId);

Outcome wrongly_written(NumeralError error, size_t at) {
  return {0, Reason::written, error, at, 0};
}

Outcome good(uint64_t id) {
  return {id, Reason::none, NumeralError::none, 0, 0};
}

}  // namespace

void write_alias(Key& key, uint64_t id, char* out) {
  uint64_t permuted = 0;
  if (!cipher_of(key).permute_id(id, &permuted)) error_cipher();
  write_base62_wide((Uint128{key.version} << 63) + permuted, out, kAliasLength);
}

Outcome read_alias(std::string_view encoded, std::string_view name) {
  const auto parsed = read_base62_wide(encoded, kAliasLength, kGreatestAlias);
  if (parsed.error != NumeralError::none) return wrongly_written(parsed.error, parsed.at);
  const auto version = static_cast<unsigned>(parsed.value >> 63);
  Key* const key = current_keys().version_of(name, version);
  if (key == nullptr) return {0, Reason::no_version, NumeralError::none, 0, version};
  uint64_t id = 0;
  if (!cipher_of(*key).unpermute_id(static_cast<uint64_t>(parsed.value) & kGreatestId, &id))
    error_cipher();
  return good(id);
}

void write_digits(Key& key, uint64_t id, unsigned length, char* out) {
  uint64_t permuted = 0;
  if (!cipher_of(key).permute_digits(id, length - 1, &permuted)) error_cipher();
  write_decimal(key.version, out, 1);
  write_decimal(permuted, out + 1, length - 1);
}

Outcome read_digits(std::string_view encoded, std::string_view name, unsigned length) {
  if (encoded.empty()) return wrongly_written(NumeralError::length, 0);
  const auto first = read_decimal(encoded.substr(0, 1), 1);
  if (first.error != NumeralError::none) return wrongly_written(first.error, first.at);
  const auto parsed = read_decimal(encoded.substr(1), length - 1);
  if (parsed.error != NumeralError::none) return wrongly_written(parsed.error, parsed.at + 1);
  const auto version = static_cast<unsigned>(first.value);
  Key* const key = current_keys().version_of(name, version);
  if (key == nullptr) return {0, Reason::no_version, NumeralError::none, 0, version};
  uint64_t id = 0;
  if (!cipher_of(*key).unpermute_digits(parsed.value, length - 1, &id)) error_cipher();
  // A text of twenty digits can represent a number that is not an id.
  if (id > kGreatestId) return wrongly_written(NumeralError::overflow, 0);
  return good(id);
}

void write_token(Key& key, uint64_t id, char* out) {
  uint8_t block[16];
  if (!cipher_of(key).encipher(id, block)) error_cipher();
  Uint128 value = 0;
  for (const uint8_t byte : block) value = value << 8 | byte;
  write_base62_wide(value, out, kTokenLength);
}

Outcome read_token(std::string_view encoded, std::string_view name) {
  const auto parsed = read_base62_wide(encoded, kTokenLength, kGreatestToken);
  if (parsed.error != NumeralError::none) return wrongly_written(parsed.error, parsed.at);
  Uint128 value = parsed.value;
  uint8_t block[16];
  for (size_t i = sizeof(block); i-- > 0; value >>= 8) block[i] = static_cast<uint8_t>(value);

  const KeyRing& keys = current_keys();
  for (int i = 0; i < keys.count; ++i) {
    if (!keys.keys[i].is_called(name)) continue;
    uint64_t id = 0;
    switch (cipher_of(keys.keys[i]).decipher(block, &id)) {
      case Cipher::Opened::authentic:
        return good(id);
      case Cipher::Opened::forged:
        break;
      case Cipher::Opened::failed:
        error_cipher();
    }
  }
  return {0, Reason::forged, NumeralError::none, 0, 0};
}

}  // namespace snowflake::alias
