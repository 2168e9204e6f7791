#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "generator_support.hpp"

namespace snowflake {
namespace {

TEST_F(GeneratorTest, MintsForItsRegionAndShard) {
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  std::vector<int64_t> ids(100);
  for (uint32_t shard = 0; shard < 4; ++shard) {
    ASSERT_TRUE(generator.next_ids(shard, ids));
    EXPECT_TRUE(strictly_increasing(ids));
    for (const int64_t id : ids) {
      EXPECT_EQ(kNarrow.region_of(static_cast<uint64_t>(id)), kRegion);
      EXPECT_EQ(kNarrow.shard_of(static_cast<uint64_t>(id)), shard);
    }
  }
  EXPECT_EQ(refusal_of(generator, 4).error, GeneratorError::invalid_argument);
}

TEST_F(GeneratorTest, WaitsAfterTheLeadIsUsedUp) {
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  const int64_t before_ms = FakeClocks::now_ms;
  std::vector<int64_t> ids(16 * 1500);
  ASSERT_TRUE(generator.next_ids(0, ids));
  EXPECT_TRUE(strictly_increasing(ids));
  EXPECT_GE(FakeClocks::now_ms - before_ms, 498);
  const uint64_t last = kNarrow.tick_of(static_cast<uint64_t>(ids.back()));
  EXPECT_LE(kNarrow.ms_of_tick(last), FakeClocks::now_ms + 1000);
}

TEST_F(GeneratorTest, OutlivesStepsBack) {
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  const int64_t first = id_of(generator);
  FakeClocks::step(-900);
  const int64_t boot_ms = FakeClocks::boot_ms;
  const int64_t second = id_of(generator);
  EXPECT_GT(second, first);
  EXPECT_EQ(FakeClocks::boot_ms, boot_ms);
  FakeClocks::step(-1000);
  EXPECT_GT(id_of(generator), second);
  EXPECT_NEAR(static_cast<double>(FakeClocks::boot_ms - boot_ms), 900, 2);
  FakeClocks::step(-10'000);
  const GeneratorStatus status = refusal_of(generator);
  EXPECT_EQ(status.error, GeneratorError::clock_behind);
  EXPECT_NEAR(static_cast<double>(status.number), 8000, 2);
}

TEST_F(GeneratorTest, BeginsAboveItsMarkWhateverTheClockShows) {
  int64_t last = 0;
  {
    FakeGenerator generator(path_, kNarrow, kRegion);
    pass_mark();
    for (int i = 0; i < 1000; ++i) last = id_of(generator);
  }
  for (const int64_t back_ms : {0, 300, 900}) {
    FakeClocks::step(-back_ms);
    FakeGenerator generator(path_, kNarrow, kRegion);
    const int64_t id = id_of(generator);
    EXPECT_GT(id, last) << back_ms;
    last = id;
  }
  FakeClocks::step(-3'600'000);
  FakeGenerator generator(path_, kNarrow, kRegion);
  const std::string before = content();
  const GeneratorStatus status = refusal_of(generator);
  EXPECT_EQ(status.error, GeneratorError::mark_ahead);
  EXPECT_GT(status.number, 3'595'000);
  EXPECT_EQ(content(), before);
}

TEST_F(GeneratorTest, RefusesAJumpAhead) {
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  id_of(generator);
  const std::string before = content();
  FakeClocks::step(61'000);
  const GeneratorStatus status = refusal_of(generator);
  EXPECT_EQ(status.error, GeneratorError::clock_jumped);
  EXPECT_EQ(status.number, 61'000);
  EXPECT_EQ(content(), before);
  FakeClocks::step(-61'000);
  const int64_t last = id_of(generator);
  FakeClocks::step(59'000);
  EXPECT_GT(id_of(generator), last);
}

// When the program that mints ids starts, the wall clock is behind the true time. A time daemon
// later steps the clock to the true time.
TEST_F(GeneratorTest, BelievesTheMarkThatTheClockAtStartWasBehind) {
  { id_of(*std::make_unique<FakeGenerator>(path_, kNarrow, kRegion)); }
  FakeClocks::step(-86'400'000);
  FakeGenerator generator(path_, kNarrow, kRegion);
  EXPECT_EQ(refusal_of(generator).error, GeneratorError::mark_ahead);
  FakeClocks::step(86'400'000);
  id_of(generator);
}

TEST_F(GeneratorTest, EndsWithTheLayout) {
  const int64_t end_ms = kNarrow.ms_of_tick(kNarrow.last_minted_tick());
  FakeClocks::now_ms = end_ms - 100;
  FakeGenerator generator(path_, kNarrow, kRegion);
  std::vector<int64_t> ids(16 * 101);
  ASSERT_TRUE(generator.next_ids(0, ids));
  EXPECT_EQ(static_cast<uint64_t>(ids.back()), kNarrow.id(kNarrow.end_position() - 1, kRegion, 0));
  EXPECT_EQ(refusal_of(generator, 0).error, GeneratorError::layout_exhausted);
  FakeClocks::step(1000);
  EXPECT_EQ(refusal_of(generator).error, GeneratorError::layout_exhausted);
  FakeClocks::now_ms = kDefaultEpoch - 1;
  EXPECT_EQ(refusal_of(generator).error, GeneratorError::clock_before_epoch);
}

TEST_F(GeneratorTest, ReturnsNoIdAboveTheDurableMark) {
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  for (int i = 0; i < 5000; ++i) {
    const auto id = static_cast<uint64_t>(id_of(generator));
    ASSERT_LT(kNarrow.ms_of_tick(kNarrow.tick_of(id)), mark_in(Disk::content));
    if (i % 7 == 0) FakeClocks::pass(1);
  }
}

TEST_F(GeneratorTest, MintsNothingThatTheDiskDoesNotTake) {
  const int folder_syncs = Disk::folder_syncs;
  ASSERT_TRUE(FakeGenerator::create(path_ + ".old", kNarrow, 0));
  EXPECT_EQ(Disk::folder_syncs, folder_syncs + 1);
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  Disk::error = EIO;
  const GeneratorStatus status = refusal_of(generator);
  EXPECT_EQ(status.error, GeneratorError::file_system);
  EXPECT_EQ(status.number, EIO);
  Disk::error = 0;
  id_of(generator);
}

// After a power failure, the file of the high-water mark has the content of the last fdatasync(),
// and the clock may show any time.
TEST_F(GeneratorTest, RepeatsNoIdAfterPowerFailures) {
  Random random(1);
  std::set<int64_t> ids;
  for (uint64_t run = 0; run < 50 * kEffort; ++run) {
    set_content(Disk::content);
    FakeGenerator generator(path_, kNarrow, kRegion);
    ASSERT_TRUE(generator.status());
    for (uint64_t calls = random.below(200); calls > 0; --calls) {
      Disk::error = random.percent(10) ? EIO : 0;
      int64_t some[20];
      const std::span<int64_t> wanted(some, random.between(1, 20));
      if (generator.next_ids(static_cast<uint32_t>(random.below(2)), wanted)) {
        for (const int64_t id : wanted) ASSERT_TRUE(ids.insert(id).second) << "twice: " << id;
      }
      FakeClocks::pass(static_cast<int64_t>(random.below(100)));
      if (random.percent(5)) FakeClocks::step(static_cast<int64_t>(random.below(4000)) - 2000);
    }
    Disk::error = 0;
    FakeClocks::pass(static_cast<int64_t>(random.below(3000)));
  }
  EXPECT_GT(ids.size(), 10'000 * kEffort);
}

TEST_F(GeneratorTest, EachErrorIsDescribed) {
  std::set<std::string> texts;
  for (int i = 1; i <= static_cast<int>(GeneratorError::clock_behind); ++i) {
    const std::string text = describe(static_cast<GeneratorError>(i));
    EXPECT_EQ(text.substr(text.size() - 1), ".");
    EXPECT_TRUE(texts.insert(text).second) << text;
  }
}

}  // namespace
}  // namespace snowflake
