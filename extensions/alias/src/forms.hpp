// The forms of aliases, and how texts are read. If a text is invalid, functions return the reason
// and raise no error, because some callers return NULL. If the keys or libcrypto are unusable,
// functions raise an error.
//
// An alias is version * 2^63 + the permuted id, in base62. Eleven characters can represent 62^11
// numbers. The number 62^11 is more than 5 * 2^63, so an alias can contain the versions 0 to 4. A
// reader computes the version before the reader uses a key. In decimal form, the first digit is the
// version of the key, and the other digits are the permuted id. A token is a block of 128 bits, in
// base62. A reader tries every version of the key, and only the right version accepts the token.
#pragma once

#include "base62_wide.hpp"
#include "decimal_permutation.hpp"
#include "key_ring.hpp"

namespace snowflake::alias {

inline constexpr size_t kAliasLength = kBase62Length;
inline constexpr size_t kTokenLength = 22;
// The number of digits: one digit for the version, and the digits of the id.
inline constexpr unsigned kMinDigits = 1 + kMinDecimalDigits;
inline constexpr unsigned kMaxDigits = 1 + kMaxDecimalDigits;

enum class Reason : uint8_t {
  none,
  written,     // `error` and `at` show the fault
  no_version,  // the key file lacks `version` of the key
  forged,      // no version of the key accepts the token
};

struct Outcome {
  uint64_t id;
  Reason reason;
  NumeralError error;
  size_t at;
  unsigned version;
};

// Each write function writes exactly as many characters as the form has. REQUIRES id <=
// kGreatestId, and for digits that the id has fewer digits than `length`.
void write_alias(Key& key, uint64_t id, char* out);
void write_digits(Key& key, uint64_t id, unsigned length, char* out);
void write_token(Key& key, uint64_t id, char* out);

// `name` is the name of a key in the file.
Outcome read_alias(std::string_view encoded, std::string_view name);
Outcome read_digits(std::string_view encoded, std::string_view name, unsigned length);
Outcome read_token(std::string_view encoded, std::string_view name);

}  // namespace snowflake::alias
