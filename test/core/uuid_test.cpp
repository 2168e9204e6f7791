#include "core/uuid.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace snowflake {
namespace {

uint64_t random_id(Random& random, const Layout& layout) {
  const uint64_t end = layout.id_bits() >= 63 ? kGreatestId : (uint64_t{1} << layout.id_bits()) - 1;
  const uint64_t id = random.percent(50) ? random.any() & end : end - (random.any() & end >> 20);
  return random.percent(10) ? random.below(std::min<uint64_t>(end, 5)) : id;
}

// Computes the fields of RFC 9562 by division, so that the test does not repeat the tested code.
void expect_fields(const Layout& layout, uint64_t id, Wide uuid) {
  unsigned __int128 left = static_cast<unsigned __int128>(uuid.high) << 64 | uuid.low;
  const auto take = [&left](unsigned bits) {
    const auto field = static_cast<uint64_t>(left % (uint64_t{1} << bits));
    left /= uint64_t{1} << bits;
    return field;
  };
  const uint64_t below =
      layout.ids_per_tick() *
      (uint64_t{1} << (layout.id_bits() - layout.time_bits - layout.sequence_bits));
  const auto product = static_cast<unsigned __int128>(id) * 0x9E3779B97F4A7C15;
  ASSERT_EQ(take(30), static_cast<uint64_t>(product) / (uint64_t{1} << 34));
  const uint64_t lower = take(32);
  ASSERT_EQ(take(2), 2u) << "variant";
  const uint64_t upper = take(12);
  ASSERT_EQ(take(4), 7u) << "version";
  ASSERT_EQ(upper * 4294967296 + lower, id % below);
  ASSERT_EQ(take(48), static_cast<uint64_t>(layout.epoch_ms) + id / below * layout.tick_ms);
}

TEST(Uuid, HasTheFieldsOfTheStandard) {
  Random random(7);
  for (int i = 0; i < 50'000; ++i) {
    const Layout layout = random_layout(random);
    const uint64_t id = random_id(random, layout);
    if (!fits_uuid(layout, id)) continue;
    expect_fields(layout, id, uuid_of(layout, id));
    ASSERT_FALSE(HasFailure()) << testing::PrintToString(layout) << ' ' << id;
  }
}

TEST(Uuid, EveryIdComesBackInOrder) {
  Random random(8);
  int compared = 0;
  for (int i = 0; i < 50'000; ++i) {
    const Layout layout = random_layout(random);
    const uint64_t a = random_id(random, layout);
    const uint64_t b = random.percent(30) ? a ^ 1 : random_id(random, layout);
    if (!fits_uuid(layout, a) || !fits_uuid(layout, b)) continue;
    const Wide of_a = uuid_of(layout, a);
    const Wide of_b = uuid_of(layout, b);
    const auto parsed = id_of_uuid(layout, of_a);
    ASSERT_EQ(parsed.error, UuidError::none) << testing::PrintToString(layout) << ' ' << a;
    ASSERT_EQ(parsed.id, a);
    const bool less = of_a.high != of_b.high ? of_a.high < of_b.high : of_a.low < of_b.low;
    ASSERT_EQ(less, a < b) << testing::PrintToString(layout) << ' ' << a << ' ' << b;
    ++compared;
  }
  EXPECT_GT(compared, 20'000);
}

TEST(Uuid, EveryDivisionComesBack) {
  Random random(9);
  for_each_division([&](const Layout& layout) {
    for (const uint64_t id : {uint64_t{0}, random_id(random, layout)}) {
      if (!fits_uuid(layout, id)) continue;
      const auto parsed = id_of_uuid(layout, uuid_of(layout, id));
      ASSERT_EQ(parsed.error, UuidError::none) << testing::PrintToString(layout) << ' ' << id;
      ASSERT_EQ(parsed.id, id);
    }
  });
}

// The time of a UUID has 48 bits, so times after 10889-08-02 do not fit.
TEST(Uuid, OnlyTheFarFutureDoesNotFit) {
  const Layout layout = layout_from("50/0/0", 1, kEpochEnd - 1);
  const auto first_beyond = static_cast<uint64_t>(kUuidEndMs - layout.epoch_ms);
  EXPECT_TRUE(fits_uuid(layout, first_beyond - 1));
  EXPECT_FALSE(fits_uuid(layout, first_beyond));
  EXPECT_EQ(id_of_uuid(layout, uuid_of(layout, first_beyond - 1)).id, first_beyond - 1);
  for (const char* text : {"instagram", "twitter", "js53", "47/7/10"}) {
    const Layout last = layout_from(text, 0, kEpochEnd - 1);
    EXPECT_TRUE(fits_uuid(last, (uint64_t{1} << std::min(last.id_bits(), 63u)) - 1)) << text;
  }
}

TEST(Uuid, AnyChangedBitIsDetected) {
  Random random(10);
  for (int i = 0; i < 5'000; ++i) {
    const Layout layout = random_layout(random);
    const uint64_t id = random_id(random, layout);
    if (!fits_uuid(layout, id)) continue;
    const Wide uuid = uuid_of(layout, id);
    for (unsigned bit = 0; bit < 64; ++bit) {
      const uint64_t flip = uint64_t{1} << bit;
      ASSERT_NE(id_of_uuid(layout, {uuid.high ^ flip, uuid.low}).error, UuidError::none);
      ASSERT_NE(id_of_uuid(layout, {uuid.high, uuid.low ^ flip}).error, UuidError::none)
          << testing::PrintToString(layout) << ' ' << id << " bit " << bit;
    }
  }
}

TEST(Uuid, ReportsTheFault) {
  const Layout layout = layout_from("41/13/10", 0, 1'000'000);
  const uint64_t id = uint64_t{5} << 23 | 77;
  const Wide uuid = uuid_of(layout, id);
  const auto error_of = [&](uint64_t high, uint64_t low) {
    return id_of_uuid(layout, {high, low}).error;
  };
  EXPECT_EQ(error_of(uuid.high, uuid.low), UuidError::none);
  EXPECT_EQ(error_of(uuid.high ^ 3 << 12, uuid.low), UuidError::version);  // version 4
  EXPECT_EQ(error_of(uuid.high, uuid.low ^ uint64_t{1} << 62), UuidError::version);
  EXPECT_EQ(error_of(uint64_t{999'999} << 16 | 0x7000, uuid.low), UuidError::time);
  EXPECT_EQ(error_of(uint64_t{0xFFFFFFFFFFFF} << 16 | 0x7000, uuid.low), UuidError::time);
  EXPECT_EQ(error_of(uuid.high | 1, uuid.low), UuidError::rest);
  EXPECT_EQ(error_of(uuid.high, uuid.low | uint64_t{1} << 53), UuidError::rest);
  EXPECT_EQ(error_of(uuid.high, uuid.low ^ 1), UuidError::check);
  const Layout seconds = layout_from("28/22/13", 1000, 0);
  const Wide whole = uuid_of(seconds, uint64_t{9} << 35);
  EXPECT_EQ(id_of_uuid(seconds, whole).id, uint64_t{9} << 35);
  EXPECT_EQ(id_of_uuid(seconds, {whole.high + (uint64_t{1} << 16), whole.low}).error,
            UuidError::time);
}

// Random UUIDs of version 7 from other programs must be refused, even if the layout of ids can
// encode their time.
TEST(Uuid, RandomOnesAreRefused) {
  Random random(11);
  const Layout layouts[] = {layout_from("instagram"), layout_from("twitter"), layout_from("js53")};
  for (const Layout& layout : layouts)
    for (uint64_t i = 0; i < 1'000'000 * kEffort; ++i) {
      const auto ms =
          static_cast<uint64_t>(layout.ms_of_tick(random.below(layout.last_minted_tick())));
      const Wide uuid{ms << 16 | 7 << 12 | random.below(4096),
                      uint64_t{2} << 62 | random.any() >> 2};
      ASSERT_NE(id_of_uuid(layout, uuid).error, UuidError::none) << uuid.high << ' ' << uuid.low;
    }
}

TEST(Uuid, FuzzedOnesThatPassRoundTrip) {
  Random random(12);
  int ids = 0;
  for (uint64_t i = 0; i < 300'000 * kEffort; ++i) {
    const Layout layout = random_layout(random);
    const uint64_t id = random_id(random, layout);
    if (!fits_uuid(layout, id)) continue;
    Wide uuid = uuid_of(layout, id);
    if (random.percent(50)) uuid.high ^= uint64_t{1} << random.below(64);
    if (random.percent(50)) uuid.low = random.any();
    const auto parsed = id_of_uuid(layout, uuid);
    if (parsed.error != UuidError::none) continue;
    ++ids;
    ASSERT_LE(parsed.id, kGreatestId);
    ASSERT_TRUE(layout.contains(parsed.id));
    ASSERT_EQ(uuid_of(layout, parsed.id), uuid) << "one UUID for an id";
  }
  EXPECT_GT(ids, 10'000);
}

}  // namespace
}  // namespace snowflake
