#include "core/region_marks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "support.hpp"

namespace snowflake {
namespace {

// Each database records its high-water mark together with its region number. If a database mints
// ids in a region or in shards that another database has left, the ids must begin above the
// recorded high-water mark.
TEST(RegionMarks, KeepsTheMarkOfEachDatabaseThatHasLeft) {
  auto marks = std::make_unique<RegionMarks<16, 32>>();
  std::map<uint32_t, std::pair<int32_t, int64_t>> now;  // of each database
  std::map<int32_t, int64_t> left;
  Random random(1);
  const auto leave = [&](uint32_t database) {
    if (const auto found = now.find(database); found != now.end()) {
      auto [place, mark] = found->second;
      left[place / 2] = std::max(left[place / 2], mark);
      now.erase(found);
    }
  };
  for (int i = 0; i < 20'000; ++i) {
    const auto database = static_cast<uint32_t>(1 + random.below(16));
    if (random.percent(20)) {
      marks->leave(database);
      leave(database);
    } else {
      const auto place = static_cast<int32_t>(random.below(16));  // region and shard set
      const auto mark = static_cast<int64_t>(1 + random.below(1'000'000));
      marks->record(database, place / 2, static_cast<uint64_t>(place % 2), mark);
      if (now.contains(database) && now[database].first != place) leave(database);
      now[database] = {place, std::max(now[database].second, mark)};
    }
    for (int32_t region = 0; region < 8; ++region)
      ASSERT_EQ(marks->left_ms(region), left[region]) << i;
  }
  std::map<uint32_t, int> listed;
  for (size_t i = 0; i < 16; ++i)
    if (const uint32_t database = marks->database_at(i)) ++listed[database];
  ASSERT_EQ(listed.size(), now.size());
  for (const auto& [database, times] : listed) EXPECT_TRUE(times == 1 && now.contains(database));
}

// If a server has more databases than RegionMarks has entries, left_ms() may return a high-water
// mark that is too high. The high-water mark from left_ms() must never be too low.
TEST(RegionMarks, LosesNoMarkWhenFull) {
  auto marks = std::make_unique<RegionMarks<4, 8>>();
  for (uint32_t database = 1; database <= 20; ++database)
    marks->record(database, 3, 0, 100 + database);
  for (uint32_t database = 1; database <= 20; ++database) marks->leave(database);
  EXPECT_EQ(marks->left_ms(3), 120);
  EXPECT_EQ(marks->left_ms(2), 0);
}

}  // namespace
}  // namespace snowflake
