#include "core/origin_fingerprint.hpp"

#include <gtest/gtest.h>

#include <set>

#include "support.hpp"

namespace snowflake {
namespace {

constexpr OriginFingerprint kHome{11, 22, 33, 44};

TEST(OriginFingerprint, NoPartHasMovedAtHome) {
  EXPECT_FALSE(moved(kHome, kHome).any());
  EXPECT_EQ(merged(kHome, kHome), kHome);
}

TEST(OriginFingerprint, AnyDifferentPartMakesItACopy) {
  const Moved machine = moved(kHome, {11, 1, 33, 44});
  EXPECT_TRUE(machine.any());
  EXPECT_TRUE(machine.machine && !machine.disk && !machine.files);
  const Moved disk = moved(kHome, {11, 22, 1, 44});
  EXPECT_TRUE(disk.any());
  EXPECT_TRUE(!disk.machine && disk.disk && !disk.files);
  const Moved files = moved(kHome, {11, 22, 33, 1});
  EXPECT_TRUE(files.any());
  EXPECT_TRUE(!files.machine && !files.disk && files.files);
}

TEST(OriginFingerprint, UnavailablePartsAreNotCompared) {
  EXPECT_FALSE(moved(kHome, {11, 0, 0, 0}).any());
  EXPECT_FALSE(moved({11, 0, 0, 0}, kHome).any());
  EXPECT_TRUE(moved(kHome, {11, 0, 0, 1}).any());
  EXPECT_FALSE(moved(unpack(0), kHome).any()) << "nothing is remembered";
}

TEST(OriginFingerprint, ANewSystemIsNotACopy) {
  EXPECT_FALSE(moved(kHome, {12, 1, 2, 3}).any());
  EXPECT_EQ(merged(kHome, {12, 1, 0, 3}), (OriginFingerprint{12, 1, 0, 3}))
      << "nothing of the other system is kept";
}

TEST(OriginFingerprint, UnavailablePartsAreKept) {
  EXPECT_EQ(merged(kHome, {11, 0, 5, 0}), (OriginFingerprint{11, 22, 5, 44}));
  EXPECT_EQ(merged({11, 0, 33, 0}, {11, 22, 0, 44}), kHome);
}

TEST(OriginFingerprint, RoundTrips) {
  Random random(24);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t bits = random.any();
    const OriginFingerprint f{system_part(bits), static_cast<uint16_t>(bits >> 15),
                              static_cast<uint16_t>(bits >> 31), static_cast<uint16_t>(bits >> 47)};
    ASSERT_GT(pack(f), 0);
    ASSERT_LT(pack(f), INT64_MAX / 2);
    ASSERT_EQ(unpack(pack(f)), f);
  }
  EXPECT_LT(pack(OriginFingerprint{0x3ffe, 0xffff, 0xffff, 0xffff}), INT64_MAX / 2);
  EXPECT_EQ(pack(OriginFingerprint{}), 0);
}

TEST(OriginFingerprint, APartIsNeverZeroAndUsesItsBits) {
  std::set<uint16_t> parts;
  std::set<uint16_t> systems;
  for (uint64_t hash = 0; hash < 0x10000; ++hash) {
    parts.insert(fingerprint_part(hash));
    systems.insert(system_part(hash));
  }
  EXPECT_EQ(parts.size(), 0xffffu);
  EXPECT_EQ(*parts.begin(), 1);
  EXPECT_EQ(systems.size(), 0x3ffeu);
  EXPECT_EQ(*systems.begin(), 1);
  EXPECT_EQ(*systems.rbegin(), 0x3ffe);
}

}  // namespace
}  // namespace snowflake
