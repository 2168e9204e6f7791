// The three uses of a key, computed with OpenSSL's libcrypto.
//
// A key of the file is never used directly. Each purpose has a different key, derived with
// HKDF-Expand (RFC 5869) and HMAC-SHA-256: "snowflake_alias compact", "snowflake_alias token",
// "snowflake_alias check".
#pragma once

#include <cstdint>

#include "key_file.hpp"

struct evp_cipher_ctx_st;
struct evp_mac_ctx_st;

namespace snowflake::alias {

// HMAC-SHA-256, set up once for all keys of a file. The object holds memory of libcrypto, so
// release() must be called. The object is trivially destructible, so that a PostgreSQL error may
// leave the scope of the object.
struct KeyDerivation {
  evp_mac_ctx_st* hmac;

  bool start();  // false if libcrypto fails
  void release();
};

// One key of the key file. A key object also holds memory of libcrypto.
struct Cipher {
  evp_cipher_ctx_st* compact;
  evp_cipher_ctx_st* seal_token;
  evp_cipher_ctx_st* open_token;
  uint8_t compact_start[16];  // AES of FF1's constant block P
  uint8_t check_value[8];
  uint8_t compact_key[32];  // both keys are kept until prepare() has passed them to libcrypto,
                            // which copies them
  uint8_t token_key[32];

  // Returns false if libcrypto fails, for lack of memory or of AES. release() must be called
  // anyway.
  bool set_key(KeyDerivation& derivation, const uint8_t (&key)[kKeyBytes]);
  // Call prepare() before the first use of the functions below. A key is prepared at its first use,
  // because most sessions use few of many keys.
  bool prepare();
  void release();

  // FF1 over 63 bits, see permutation.hpp. Returns false if libcrypto fails.
  bool permute_id(uint64_t id, uint64_t* permuted) const;
  bool unpermute_id(uint64_t permuted, uint64_t* id) const;

  // FF1 over decimal digits, see decimal_permutation.hpp. Uses the same key as FF1 over 63 bits.
  // Different radices and numbers of digits give different permutations, because block P contains
  // the radix and the number of digits.
  bool permute_digits(uint64_t value, unsigned digits, uint64_t* permuted) const;
  bool unpermute_digits(uint64_t permuted, unsigned digits, uint64_t* value) const;

  // Encode-then-encipher (Bellare and Rogaway 2000): one block of AES over the id and 64 zero bits.
  // A guessed block is authentic with a probability of 1 in 2^64.
  bool encipher(uint64_t id, uint8_t (&block)[16]) const;
  enum class Opened { authentic, forged, failed };
  Opened decipher(const uint8_t (&block)[16], uint64_t* id) const;
};

void forget(void* secret, size_t bytes);

}  // namespace snowflake::alias
