// An id can be encrypted into three kinds of text:
//
//  - Alias: the number version * 2^63 + the permuted id, written in base62. The version of the key
//    is 0 to 4, and the permuted id is less than 2^63. Eleven base62 characters are enough for an
//    alias, because its number is less than 5 * 2^63, which is less than 62^11.
//
//  - Digits: the first digit is the version of the key, and the other digits are the permuted id.
//
//  - Token: an encrypted block of 128 bits, written in base62. The function read_token() tries
//    every version of the key, and only the right version accepts the token.
//
// If a text is invalid, the functions that read texts return the reason, and raise no error. Some
// callers return NULL for an invalid text. If the keys or libcrypto are unusable, the functions
// raise an error.
#pragma once

#include "base62_wide.hpp"
#include "decimal_permutation.hpp"
#include "key_ring.hpp"

namespace snowflake::alias {

inline constexpr size_t kAliasLength = kBase62Length;
inline constexpr size_t kTokenLength = 22;
inline constexpr unsigned kMinDigits = 1 + kMinDecimalDigits;
inline constexpr unsigned kMaxDigits = 1 + kMaxDecimalDigits;

enum class Reason : uint8_t {
  none,
  written,     // `error` and `at` are set
  no_version,  // the key file has no key of this `version`
  forged,      // every version of the key rejects the token
};

struct Outcome {
  uint64_t id;
  Reason reason;
  NumeralError error;
  size_t at;
  unsigned version;
};

// Each function write_...() writes a text of fixed length, without a zero byte at the end. REQUIRES
// id <= kGreatestId. write_digits() REQUIRES that the id has fewer digits than `length`.
void write_alias(Key& key, uint64_t id, char* out);
void write_digits(Key& key, uint64_t id, unsigned length, char* out);
void write_token(Key& key, uint64_t id, char* out);

// The argument `name` is the name of a key in the key file.
Outcome read_alias(std::string_view encoded, std::string_view name);
Outcome read_digits(std::string_view encoded, std::string_view name, unsigned length);
Outcome read_token(std::string_view encoded, std::string_view name);

}  // namespace snowflake::alias
