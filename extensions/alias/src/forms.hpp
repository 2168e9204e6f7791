// What aliases look like, and what a text that somebody passes comes to. What is wrong with a text
// is an outcome, for some callers want NULL; what is wrong with the set-up (keys, libcrypto) is an
// error here as everywhere.
//
// An alias is version * 2^63 + the permuted id, in base62: 5 * 2^63 numbers of the 62^11 that
// eleven characters have. So the version that made an alias is known before any key is tried. In
// digits the version is the first one, and the others are the id's, permuted among as many. A token
// is a block of 128 bits, in base62; which version made it is found by trying, for only that one
// opens it.
#pragma once

#include "base62_wide.hpp"
#include "decimal_permutation.hpp"
#include "key_ring.hpp"

namespace snowflake::alias {

inline constexpr size_t kAliasLength = kBase62Length;
inline constexpr size_t kTokenLength = 22;
// The version's digit and the id's.
inline constexpr unsigned kMinDigits = 1 + kMinDecimalDigits;
inline constexpr unsigned kMaxDigits = 1 + kMaxDecimalDigits;

enum class Reason : uint8_t {
  none,
  written,     // `error` and `at` say how
  no_version,  // of `version` the key file has no such key
  forged,      // no version of the key accepts it
};

struct Outcome {
  uint64_t id;
  Reason reason;
  NumeralError error;
  size_t at;
  unsigned version;
};

// Write exactly as many characters as the form has. REQUIRES id <= kGreatestId, and for digits that
// it has one digit less than `length` at most.
void write_alias(Key& key, uint64_t id, char* out);
void write_digits(Key& key, uint64_t id, unsigned length, char* out);
void write_token(Key& key, uint64_t id, char* out);

// `name` is that of a key in the file.
Outcome read_alias(std::string_view encoded, std::string_view name);
Outcome read_digits(std::string_view encoded, std::string_view name, unsigned length);
Outcome read_token(std::string_view encoded, std::string_view name);

}  // namespace snowflake::alias
