#include "cipher.hpp"

#include <cstring>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "decimal_permutation.hpp"
#include "permutation.hpp"

namespace snowflake::alias {

namespace {

constexpr size_t kBlock = 16;

// Block P of FF1 (NIST SP 800-38G) has these fields:
//
//  - bytes 0 to 2: the constants 1, 2 and 1
//
//  - bytes 3 to 5: the radix, as an integer of three bytes with the value 2
//
//  - byte 6: the number of rounds of FF1, 10
//
//  - byte 7: the number of bits of the shorter half of an id (u), 31 of 63
//
//  - bytes 8 to 11: the number of bits of an id (n), which is 63
//
//  - bytes 12 to 15: the length of the tweak (an optional input of FF1), 0 because no tweak is used
constexpr uint8_t kFf1Parameters[kBlock] = {1, 2, 1, 0, 0, 2, 10, 31, 0, 0, 0, 63, 0, 0, 0, 0};

void store_big_endian(uint64_t value, uint8_t* bytes, size_t count) {
  for (size_t i = count; i-- > 0; value >>= 8) bytes[i] = static_cast<uint8_t>(value);
}

uint64_t load_big_endian(const uint8_t* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}

// Computes HKDF-Expand of RFC 5869 for 32 bytes, which is only the block T(1). The last byte of
// `purpose` must be 1, because HKDF (RFC 5869) numbers its output blocks from 1. The argument
// `hmac` must already be initialized with the key from which derive() derives a key.
bool derive(EVP_MAC_CTX* hmac, std::string_view purpose, uint8_t (&derived)[32]) {
  size_t size = 0;
  return EVP_MAC_init(hmac, nullptr, 0, nullptr) == 1 &&
         EVP_MAC_update(hmac, reinterpret_cast<const uint8_t*>(purpose.data()), purpose.size()) ==
             1 &&
         EVP_MAC_final(hmac, derived, &size, sizeof(derived)) == 1 && size == sizeof(derived);
}

EVP_CIPHER_CTX* new_context(const uint8_t (&key)[32], bool encrypt) {
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  if (context == nullptr) return nullptr;
  if (EVP_CipherInit_ex(context, EVP_aes_256_ecb(), nullptr, key, nullptr, encrypt) == 1 &&
      EVP_CIPHER_CTX_set_padding(context, 0) == 1)
    return context;
  EVP_CIPHER_CTX_free(context);
  return nullptr;
}

bool apply(EVP_CIPHER_CTX* context, const uint8_t* in, uint8_t* out) {
  int length = 0;
  return EVP_CipherUpdate(context, out, &length, in, kBlock) == 1 && length == int{kBlock};
}

// FF1 (NIST SP 800-38G) uses AES-CBC-MAC as its pseudorandom function, over two blocks that the
// standard calls P and Q. Each round of FF1 changes one half of the id. The input block Q of FF1
// contains zeros, the number of the round, and the half of the id that the round does not change.
struct RoundFunction {
  const Cipher& cipher;
  bool* failed;

  uint32_t operator()(unsigned round, uint32_t half) const {
    uint8_t block[kBlock];
    memcpy(block, cipher.compact_start, kBlock);
    block[11] ^= static_cast<uint8_t>(round);
    for (size_t i = 0; i < 4; ++i) block[12 + i] ^= static_cast<uint8_t>(half >> (24 - 8 * i));
    if (!apply(cipher.compact, block, block)) *failed = true;
    return static_cast<uint32_t>(load_big_endian(block, 8));
  }
};

// Computes the pseudorandom function of FF1 (a method of NIST SP 800-38G that encrypts numbers) for
// decimal digits (radix 10). FF1 splits the digits into two halves, and stores each half in as many
// bytes as the longer half needs. For a number of 19 digits, the encryption method FF1 uses the
// first 12 bytes of the result of AES. For a number of 6 to 18 digits, FF1 uses the first 8 bytes
// of the result of AES.
class DecimalRoundFunction {
 public:
  DecimalRoundFunction(const Cipher& cipher, unsigned digits, bool* failed)
      : cipher_(cipher), failed_(failed), bytes_(bytes_of(digits - digits / 2)) {
    const uint8_t parameters[kBlock] = {1, 2,  1,  0,
                                        0, 10, 10, static_cast<uint8_t>(digits / 2),
                                        0, 0,  0,  static_cast<uint8_t>(digits),
                                        0, 0,  0,  0};
    if (!apply(cipher.compact, parameters, start_)) *failed_ = true;
  }

  Uint128 operator()(unsigned round, uint64_t half) const {
    uint8_t block[kBlock] = {};
    block[kBlock - 1 - bytes_] = static_cast<uint8_t>(round);
    store_big_endian(half, block + kBlock - bytes_, bytes_);
    for (size_t i = 0; i < kBlock; ++i) block[i] ^= start_[i];
    if (!apply(cipher_.compact, block, block)) *failed_ = true;
    Uint128 value = 0;
    const size_t counted = 4 * ((bytes_ + 3) / 4) + 4;
    for (size_t i = 0; i < counted; ++i) value = value << 8 | block[i];
    return value;
  }

 private:
  static size_t bytes_of(unsigned digits) {
    size_t bytes = 0;
    for (uint64_t greatest = power_of_ten(digits) - 1; greatest > 0; greatest >>= 8) ++bytes;
    return bytes;
  }

  const Cipher& cipher_;
  bool* failed_;
  size_t bytes_;  // number of bytes that store half of the digits (b in NIST SP 800-38G)
  uint8_t start_[kBlock] = {};
};

}  // namespace

bool KeyDerivation::start() {
  EVP_MAC* const mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  hmac = mac == nullptr ? nullptr : EVP_MAC_CTX_new(mac);
  EVP_MAC_free(mac);  // the context keeps a reference
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                                   OSSL_PARAM_construct_end()};
  return hmac != nullptr && EVP_MAC_CTX_set_params(hmac, parameters) == 1;
}

void KeyDerivation::release() {
  EVP_MAC_CTX_free(hmac);  // also overwrites the key in memory
  hmac = nullptr;
}

bool Cipher::set_key(KeyDerivation& derivation, const uint8_t (&key)[kKeyBytes]) {
  EVP_MAC_CTX* const hmac = derivation.hmac;
  uint8_t check[32];
  const bool good = EVP_MAC_init(hmac, key, kKeyBytes, nullptr) == 1 &&
                    derive(hmac, "snowflake_alias compact\1", compact_key) &&
                    derive(hmac, "snowflake_alias token\1", token_key) &&
                    derive(hmac, "snowflake_alias check\1", check);
  if (good) memcpy(check_value, check, sizeof(check_value));
  forget(check, sizeof(check));
  return good;
}

bool Cipher::prepare() {
  if (open_token != nullptr) return true;
  if (compact == nullptr) compact = new_context(compact_key, true);
  if (seal_token == nullptr) seal_token = new_context(token_key, true);
  if (compact == nullptr || seal_token == nullptr || !apply(compact, kFf1Parameters, compact_start))
    return false;
  open_token = new_context(token_key, false);
  if (open_token == nullptr) return false;
  forget(compact_key, sizeof(compact_key));
  forget(token_key, sizeof(token_key));
  return true;
}

void Cipher::release() {
  EVP_CIPHER_CTX_free(compact);
  EVP_CIPHER_CTX_free(seal_token);
  EVP_CIPHER_CTX_free(open_token);
  forget(this, sizeof(*this));
}

bool Cipher::permute_id(uint64_t id, uint64_t* permuted) const {
  bool failed = false;
  *permuted = permute(id, RoundFunction{*this, &failed});
  return !failed;
}

bool Cipher::unpermute_id(uint64_t permuted, uint64_t* id) const {
  bool failed = false;
  *id = unpermute(permuted, RoundFunction{*this, &failed});
  return !failed;
}

bool Cipher::permute_digits(uint64_t value, unsigned digits, uint64_t* permuted) const {
  bool failed = false;
  *permuted = permute_decimal(value, digits, DecimalRoundFunction(*this, digits, &failed));
  return !failed;
}

bool Cipher::unpermute_digits(uint64_t permuted, unsigned digits, uint64_t* value) const {
  bool failed = false;
  *value = unpermute_decimal(permuted, digits, DecimalRoundFunction(*this, digits, &failed));
  return !failed;
}

bool Cipher::encipher(uint64_t id, uint8_t (&block)[16]) const {
  store_big_endian(id, block, 8);
  memset(block + 8, 0, 8);
  return apply(seal_token, block, block);
}

Cipher::Opened Cipher::decipher(const uint8_t (&block)[16], uint64_t* id) const {
  static constexpr uint8_t kRedundancy[8] = {};
  uint8_t plain[16];
  if (!apply(open_token, block, plain)) return Opened::failed;
  *id = load_big_endian(plain, 8);
  const bool authentic = (CRYPTO_memcmp(plain + 8, kRedundancy, 8) == 0) & (*id <= kGreatestId);
  return authentic ? Opened::authentic : Opened::forged;
}

void forget(void* secret, size_t bytes) {
  OPENSSL_cleanse(secret, bytes);
}

}  // namespace snowflake::alias
