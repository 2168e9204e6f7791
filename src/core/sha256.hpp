// SHA-256 (FIPS 180-4) for shard_for(). The hash protects no secret in this project.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace snowflake {

using Sha256 = std::array<uint32_t, 8>;

namespace detail {

// Constants of FIPS 180-4: the first 32 bits of the fractional parts of roots. These are the cube
// roots of the first 64 primes, and the square roots of the first eight.
inline constexpr uint32_t kSha256Rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
inline constexpr Sha256 kSha256Start = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

struct Sha256Block {
  uint32_t words[16] = {};

  constexpr void put(size_t at, uint8_t byte) noexcept {
    words[at / 4] |= uint32_t{byte} << (24 - 8 * (at % 4));
  }
};

constexpr void add_block(Sha256& hash, const Sha256Block& block) noexcept {
  uint32_t w[64] = {};
  for (int t = 0; t < 16; ++t) w[t] = block.words[t];
  for (int t = 16; t < 64; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = hash;
  for (int t = 0; t < 64; ++t) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256Rounds[t] + w[t];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  const Sha256 more = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < hash.size(); ++i) hash[i] += more[i];
}

}  // namespace detail

constexpr Sha256 sha256(std::string_view text) noexcept {
  Sha256 hash = detail::kSha256Start;
  size_t at = 0;
  for (; text.size() - at >= 64; at += 64) {
    detail::Sha256Block block;
    for (size_t i = 0; i < 64; ++i) block.put(i, static_cast<uint8_t>(text[at + i]));
    detail::add_block(hash, block);
  }
  detail::Sha256Block block;
  const size_t rest = text.size() - at;
  for (size_t i = 0; i < rest; ++i) block.put(i, static_cast<uint8_t>(text[at + i]));
  block.put(rest, 0x80);
  if (rest >= 56) {
    detail::add_block(hash, block);
    block = {};
  }
  const uint64_t bits = uint64_t{text.size()} * 8;
  block.words[14] = static_cast<uint32_t>(bits >> 32);
  block.words[15] = static_cast<uint32_t>(bits);
  detail::add_block(hash, block);
  return hash;
}

static_assert(sha256("abc") == Sha256{0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223, 0xb00361a3,
                                      0x96177a9c, 0xb410ff61, 0xf20015ad});

}  // namespace snowflake
