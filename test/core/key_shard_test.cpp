
#include "core/key_shard.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "support.hpp"

namespace snowflake {
namespace {

std::string hex(const Sha256& hash) {
  std::string text;
  for (const uint32_t word : hash) {
    char digits[9];
    std::snprintf(digits, sizeof(digits), "%08x", word);
    text += digits;
  }
  return text;
}

// The hashes are test vectors of NIST for SHA-256 (FIPS 180-4).
TEST(Sha256Test, PublishedVectors) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, LengthsAboutTheEndOfABlock) {
  EXPECT_EQ(hex(sha256(std::string(55, 'x'))),
            "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(hex(sha256(std::string(56, 'x'))),
            "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(hex(sha256(std::string(63, 'x'))),
            "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
  EXPECT_EQ(hex(sha256(std::string(64, 'x'))),
            "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
  EXPECT_EQ(hex(sha256(std::string(119, 'x'))),
            "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c");
  EXPECT_EQ(hex(sha256(std::string(120, 'x'))),
            "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98");
}

// Applications store rows by shard_for(), so all versions must return the same shards
// (doc/routing.md).
TEST(KeyShard, Vectors) {
  EXPECT_EQ(shard_for(int64_t{0}, 256), 95u);
  EXPECT_EQ(shard_for(int64_t{5}, 256), 239u);
  EXPECT_EQ(shard_for(int64_t{5}, 8192), 7653u);
  EXPECT_EQ(shard_for(int64_t{-1}, 256), 27u);
  EXPECT_EQ(shard_for(std::numeric_limits<int64_t>::min(), 256), 133u);
  EXPECT_EQ(shard_for(std::numeric_limits<int64_t>::max(), 8192), 5737u);
  EXPECT_EQ(shard_for("", 256), 227u);
  EXPECT_EQ(shard_for("ann@example.org", 256), 67u);
  EXPECT_EQ(shard_for("M\u00fcller", 8192), 5360u);
}

TEST(KeyShard, ANumberIsItsDigitsAndAUuidItsCharacters) {
  EXPECT_EQ(shard_for(int64_t{-1234567890123456789}, 1u << 24),
            shard_for("-1234567890123456789", 1u << 24));
  const uint8_t uuid[16] = {0x01, 0x94, 0x1f, 0x29, 0x7c, 0x00, 0x70, 0x00,
                            0xab, 0xcd, 0xef, 0x98, 0x76, 0x54, 0x32, 0x10};
  EXPECT_EQ(shard_for(uuid, 1u << 24), shard_for("01941f29-7c00-7000-abcd-ef9876543210", 1u << 24));
}

TEST(KeyShard, OneShardAndTheLast) {
  EXPECT_EQ(shard_for("any", 1), 0u);
  for (int64_t key = 0; key < 10'000; ++key) {
    const uint32_t shard = shard_for(key, 1000);
    ASSERT_LT(shard, 1000u);
    ASSERT_EQ(shard_for(key, 256), shard_for(key, 512) / 2) << key;
  }
}

// Returns by how many standard deviations the chi-square of the counts differs from its expected
// value. Consecutive numbers and names must spread over the shards as evenly as random keys.
template <class Key>
double deviations(uint32_t shards, int keys, Key key) {
  std::vector<int> count(shards);
  for (int i = 0; i < keys; ++i) ++count[key(i)];
  const double expected = static_cast<double>(keys) / shards;
  double chi_square = 0;
  for (const int n : count) chi_square += (n - expected) * (n - expected) / expected;
  const double freedom = shards - 1;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(KeyShard, SpreadsEvenly) {
  for (const uint32_t shards : {2u, 256u, 2000u}) {
    constexpr int kKeys = 15'000;
    const auto small = [=](double d) { return std::abs(d) < 6; };
    EXPECT_PRED1(small,
                 deviations(shards, kKeys, [=](int i) { return shard_for(int64_t{i}, shards); }));
    EXPECT_PRED1(small, deviations(shards, kKeys, [=](int i) {
                   return shard_for(int64_t{i} << 23, shards);  // ids of one shard
                 }));
    EXPECT_PRED1(small, deviations(shards, kKeys, [=](int i) {
                   return shard_for("user" + std::to_string(i) + "@example.org", shards);
                 }));
    EXPECT_PRED1(small, deviations(shards, kKeys, [=](int i) {
                   uint8_t uuid[16] = {};
                   for (int byte = 0; byte < 4; ++byte)
                     uuid[15 - byte] = static_cast<uint8_t>(i >> 8 * byte);
                   return shard_for(uuid, shards);
                 }));
  }
}

}  // namespace
}  // namespace snowflake
