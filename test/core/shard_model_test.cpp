// Compares each step of random schedules with a model of a shard. Checks that ids are unique and
// ascend, to detect a fault that both the tested shard and its model have.
#include "shard_model.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace snowflake {
namespace {

class Schedule {
 public:
  explicit Schedule(uint64_t number)
      : random_(1000 + number),
        layout_(choose_layout()),
        counters_(random_.between(1, 3)),
        models_(counters_.size(), ModelShard(layout_)),
        floors_(counters_.size(), 0),
        ids_(std::min<size_t>(layout_.shards(), random_.between(1, 6))) {
    now_ = random_.percent(25)   ? layout_.last_minted_tick() - random_.below(100)
           : random_.percent(10) ? random_.below(3)
                                 : random_.below(layout_.last_minted_tick());
    limit_ = above(now_);
  }

  void run() {
    for (int step = 0; step < 400 && !testing::Test::HasFatalFailure(); ++step) {
      SCOPED_TRACE(testing::Message()
                   << "step " << step << ", " << testing::PrintToString(layout_));
      switch (random_.below(20)) {
        case 0:
        case 1:
          raise_floor();
          break;
        case 2:
          limit_ = random_.percent(10) ? random_.between(0, above(now_)) : above(now_);
          break;
        case 3:
          lead_ = random_.percent(30) ? 0 : random_.below(random_.percent(20) ? 60'000 : 12);
          break;
        case 4:
          spread_ = random_.percent(30) ? 0 : random_.between(1, layout_.ids_per_tick());
          break;
        case 5:
        case 6:
        case 7:
        case 8:
          step_clock();
          break;
        default:
          claim(random_.below(ids_.size()));
      }
    }
  }

  // If shards share a counter, their ids differ in the shard bits.
  std::vector<int64_t> all_ids() const {
    std::vector<int64_t> all;
    for (const auto& ids : ids_) all.insert(all.end(), ids.begin(), ids.end());
    return all;
  }
  const std::vector<std::vector<int64_t>>& ids_by_shard() const { return ids_; }
  int seen(Outcome outcome) const { return seen_[static_cast<size_t>(outcome)]; }

 private:
  // Prefers layouts with few sequence bits, which have few ids per tick (time unit), so that claims
  // often exhaust the ids of a tick.
  Layout choose_layout() {
    if (random_.percent(25)) return random_layout(random_);
    Layout layout = random_layout(random_);
    layout.sequence_bits = static_cast<uint8_t>(random_.below(7));
    if (check(layout) != LayoutError::none) return choose_layout();
    return layout;
  }

  uint64_t above(uint64_t tick) {
    return layout_.first_position(tick) +
           random_.below(layout_.ids_per_tick() * random_.between(1, 40));
  }

  void step_clock() {
    if (random_.percent(20)) {  // like a waiting call
      now_ = layout_.tick_of_position(counters_[random_.below(counters_.size())].last());
    } else if (random_.percent(35)) {
      now_ -= std::min(now_, random_.below(random_.percent(20) ? 5000 : 10));
    } else {
      now_ += random_.below(random_.percent(20) ? 5000 : 10);
    }
    now_ = std::min(now_, layout_.last_minted_tick());
  }

  void raise_floor() {
    const size_t w = random_.below(counters_.size());
    uint64_t floor = counters_[w].last();
    if (random_.percent(30))
      floor = above(now_);
    else if (random_.percent(30))
      floor = layout_.first_position(layout_.tick_of_position(floor) + 1) -
              random_.below(std::min<uint64_t>(layout_.ids_per_tick(), 4));
    else if (random_.percent(50))
      floor += random_.below(50);
    else
      floor -= std::min(floor, random_.below(50));
    counters_[w].raise_floor(floor);
    models_[w].raise_floor(floor);
    floors_[w] = std::max(floors_[w], floor);
    ASSERT_EQ(counters_[w].last(), models_[w].last());
  }

  void claim(size_t shard) {
    const size_t w = shard % counters_.size();
    const Bounds bounds{now_, lead_, limit_, spread_};
    const uint64_t wanted =
        random_.percent(60) ? 1 : random_.between(1, random_.percent(20) ? 2000 : 60);
    const uint64_t before = counters_[w].last();
    const Claim claim = counters_[w].claim(layout_, bounds, wanted);
    const Claim model = models_[w].claim(bounds, wanted);
    ++seen_[static_cast<size_t>(claim.outcome)];

    ASSERT_EQ(claim.outcome, model.outcome);
    ASSERT_EQ(claim.first, model.first);
    ASSERT_EQ(claim.count, model.count);
    ASSERT_EQ(claim.borrowed, model.borrowed);
    ASSERT_EQ(counters_[w].last(), models_[w].last());
    if (claim.outcome == Outcome::claimed)
      check_claimed(claim, bounds, wanted, before, shard);
    else
      ASSERT_EQ(counters_[w].last(), before);
    if (claim.outcome == Outcome::at_limit && random_.percent(50))
      limit_ = above(layout_.tick_of_position(claim.first));
    if (claim.outcome == Outcome::ahead_of_clock && random_.percent(30))
      now_ = layout_.tick_of_position(claim.first);
  }

  void check_claimed(const Claim& claim, const Bounds& bounds, uint64_t wanted, uint64_t before,
                     size_t shard) {
    const size_t w = shard % counters_.size();
    ASSERT_GT(claim.first, before);
    ASSERT_GE(claim.first, floors_[w]);
    ASSERT_GE(layout_.tick_of_position(claim.first), bounds.now);
    ASSERT_LE(layout_.tick_of_position(claim.last()), bounds.now + bounds.lead);
    ASSERT_LT(claim.last(), bounds.limit);
    ASSERT_LE(layout_.tick_of_position(claim.last()), layout_.last_minted_tick());
    ASSERT_LE(claim.count, wanted);
    // If claim() takes fewer ids than `wanted`, no more ids are available, so the next call of
    // claim() must fail.
    if (claim.count < wanted) {
      const Claim next = counters_[w].claim(layout_, bounds, 1);
      ASSERT_NE(next.outcome, Outcome::claimed);
      ASSERT_EQ(next.first, claim.last() + 1);
    }

    auto& ids = ids_[shard];
    const size_t had = ids.size();
    ids.resize(had + claim.count);
    write_ids(layout_, 0, static_cast<uint32_t>(shard), claim.first, claim.count, ids.data() + had);
  }

  Random random_;
  Layout layout_;
  std::vector<Shard> counters_;
  std::vector<ModelShard> models_;
  std::vector<uint64_t> floors_;
  std::vector<std::vector<int64_t>> ids_;  // of each shard
  uint64_t now_;
  uint64_t limit_;
  uint64_t lead_ = 100;
  uint64_t spread_ = 0;
  int seen_[4] = {};
};

TEST(ShardModel, RandomSchedules) {
  int seen[4] = {};
  size_t minted = 0;
  for (uint64_t number = 0; number < 250 * kEffort; ++number) {
    SCOPED_TRACE(testing::Message()
                 << "SNOWFLAKE_TEST_SEED=" << test_seed() << ", schedule " << number);
    Schedule schedule(number);
    schedule.run();
    const auto ids = schedule.all_ids();
    for (const int64_t id : ids) ASSERT_GE(id, 0);
    ASSERT_TRUE(all_distinct(ids));
    for (const auto& of_shard : schedule.ids_by_shard()) ASSERT_TRUE(strictly_increasing(of_shard));
    ASSERT_FALSE(HasFatalFailure());
    minted += ids.size();
    for (size_t i = 0; i < 4; ++i) seen[i] += schedule.seen(static_cast<Outcome>(i));
  }
  EXPECT_GT(minted, 50'000u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_GT(seen[i], 500) << testing::PrintToString(static_cast<Outcome>(i));
  std::printf("%zu ids; claims: %d claimed, %d ahead, %d at limit, %d exhausted\n", minted, seen[0],
              seen[1], seen[2], seen[3]);
}

}  // namespace
}  // namespace snowflake
