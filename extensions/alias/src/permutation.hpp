// A keyed permutation of the ids 0 to 2^63 - 1: FF1 of NIST SP 800-38G with radix 2, 63 digits and
// an empty tweak. The caller provides this pseudorandom function, AES-CBC-MAC over the blocks P and
// Q of NIST SP 800-38G:
//
//     uint32_t round_function(unsigned round, uint32_t half)
//
// The function round_function() returns the number that NIST SP 800-38G calls NUM(S), modulo 2^32.
// FF1 does not use higher bits, because each half of an id has at most 32 bits.
//
// FF1 is an alternating Feistel network of ten rounds. A Feistel network of four rounds is a strong
// pseudorandom permutation up to about 2^16 queries (Luby and Rackoff 1988). Feistel networks of
// more than four rounds have proofs of security up to nearly 2^32 queries (Patarin 2004). Hoang and
// Rogaway (2010) give proofs for Feistel networks with halves of unequal size. The proofs of Luby,
// Rackoff, Patarin, Hoang and Rogaway do not cover an attacker who has four billion chosen ids
// encrypted.
#pragma once

#include "core/numeral.hpp"

namespace snowflake {

namespace detail {

inline constexpr unsigned kFeistelRounds = 10;

// Even rounds of FF1 change the upper 31 bits of an id, and odd rounds change the lower 32 bits.
constexpr uint32_t feistel_mask(unsigned round) noexcept {
  return round % 2 == 0 ? 0x7FFFFFFF : 0xFFFFFFFF;
}

}  // namespace detail

template <class RoundFunction>
constexpr uint64_t permute(uint64_t id, RoundFunction&& round_function) noexcept {
  auto a = static_cast<uint32_t>(id >> 32);
  auto b = static_cast<uint32_t>(id);
  for (unsigned round = 0; round < detail::kFeistelRounds; ++round) {
    const uint32_t c = (a + round_function(round, b)) & detail::feistel_mask(round);
    a = b;
    b = c;
  }
  return uint64_t{a} << 32 | b;
}

template <class RoundFunction>
constexpr uint64_t unpermute(uint64_t permuted, RoundFunction&& round_function) noexcept {
  auto a = static_cast<uint32_t>(permuted >> 32);
  auto b = static_cast<uint32_t>(permuted);
  for (unsigned round = detail::kFeistelRounds; round-- > 0;) {
    const uint32_t c = b;
    b = a;
    a = (c - round_function(round, b)) & detail::feistel_mask(round);
  }
  return uint64_t{a} << 32 | b;
}

}  // namespace snowflake
