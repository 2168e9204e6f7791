// Encrypts ids with a key of the key file, with OpenSSL's libcrypto.
//
// A key of the key file is never used directly. HKDF-Expand (RFC 5869) with HMAC-SHA-256 derives
// three keys, for the purposes "snowflake_alias compact", "snowflake_alias token" and
// "snowflake_alias check".
#pragma once

#include <cstdint>

#include "key_file.hpp"

struct evp_cipher_ctx_st;
struct evp_mac_ctx_st;

namespace snowflake::alias {

// HMAC-SHA-256, set up once for all keys of a file. release() must be called to free memory of
// libcrypto, because a PostgreSQL error skips destructors.
struct KeyDerivation {
  evp_mac_ctx_st* hmac;

  bool start();  // false if libcrypto fails
  void release();
};

// One key of the key file. release() must be called to free memory of libcrypto.
struct Cipher {
  evp_cipher_ctx_st* compact;
  evp_cipher_ctx_st* seal_token;
  evp_cipher_ctx_st* open_token;
  uint8_t compact_start[16];  // AES of FF1's constant block P
  uint8_t check_value[8];
  uint8_t compact_key[32];  // kept until prepare()
  uint8_t token_key[32];

  // Returns false if libcrypto fails, for lack of memory or of AES. release() must be called even
  // then.
  bool set_key(KeyDerivation& derivation, const uint8_t (&key)[kKeyBytes]);
  // Must be called before the functions below. A key is prepared at its first use, because most
  // sessions use few of many keys.
  bool prepare();
  void release();

  // FF1 over 63 bits, see permutation.hpp. Returns false if libcrypto fails.
  bool permute_id(uint64_t id, uint64_t* permuted) const;
  bool unpermute_id(uint64_t permuted, uint64_t* id) const;

  // FF1 over decimal digits (decimal_permutation.hpp), with the key of permute_id(). All
  // permutations differ, because FF1's block P contains the radix and the number of digits.
  bool permute_digits(uint64_t value, unsigned digits, uint64_t* permuted) const;
  bool unpermute_digits(uint64_t permuted, unsigned digits, uint64_t* value) const;

  // Encode-then-encipher (Bellare and Rogaway 2000): one block of AES over the id and 64 zero bits.
  // A guessed block is accepted with a probability of 1 in 2^64.
  bool encipher(uint64_t id, uint8_t (&block)[16]) const;
  enum class Opened { authentic, forged, failed };
  Opened decipher(const uint8_t (&block)[16], uint64_t* id) const;
};

void forget(void* secret, size_t bytes);

}  // namespace snowflake::alias
