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

// KeyDerivation is an HMAC-SHA-256 that is set up once for all keys of a file. Call release() to
// free memory of libcrypto, because a PostgreSQL error skips destructors.
struct KeyDerivation {
  evp_mac_ctx_st* hmac;

  bool start();  // false if libcrypto fails
  void release();
};

// Cipher contains one key of the key file. release() must be called to free memory of libcrypto.
struct Cipher {
  evp_cipher_ctx_st* compact;
  evp_cipher_ctx_st* seal_token;
  evp_cipher_ctx_st* open_token;
  uint8_t compact_start[16];  // block P of NIST SP 800-38G, encrypted with AES
  uint8_t check_value[8];
  uint8_t compact_key[32];  // kept until prepare()
  uint8_t token_key[32];

  // Returns false if libcrypto fails because memory or AES is not available. The caller must call
  // release() even if set_key() fails.
  bool set_key(KeyDerivation& derivation, const uint8_t (&key)[kKeyBytes]);
  // prepare() must be called before a function that encrypts or decrypts. A key is prepared at its
  // first use, because most sessions use only a few of the keys in the key file.
  bool prepare();
  void release();

  // Permutes the 63 bits of an id with FF1, a format-preserving cipher (permutation.hpp). Returns
  // false if libcrypto fails.
  bool permute_id(uint64_t id, uint64_t* permuted) const;
  bool unpermute_id(uint64_t permuted, uint64_t* id) const;

  // Permutes decimal digits with FF1 (decimal_permutation.hpp) and the key of permute_id(). The
  // result of permute_digits() also depends on `digits`, because FF1 encrypts the radix (10) and
  // the number of digits with AES.
  bool permute_digits(uint64_t value, unsigned digits, uint64_t* permuted) const;
  bool unpermute_digits(uint64_t permuted, unsigned digits, uint64_t* value) const;

  // Encrypts the id and 64 zero bits as one AES block (encode-then-encipher, Bellare and Rogaway
  // 2000). The function decipher() accepts a guessed block with a probability of 1 in 2^64.
  bool encipher(uint64_t id, uint8_t (&block)[16]) const;
  enum class Opened { authentic, forged, failed };
  Opened decipher(const uint8_t (&block)[16], uint64_t* id) const;
};

void forget(void* secret, size_t bytes);

}  // namespace snowflake::alias
