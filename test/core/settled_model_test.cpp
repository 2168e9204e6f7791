// Tests settle() in every interleaving of claims, commits, snapshots and readers. Rows that become
// visible later must not have ids below the result of settle().
#include "settled_model.hpp"

namespace snowflake_interrupted {
namespace {

using stepped::Actor;
using stepped::Schedules;

constexpr Layout layout = parse_layout("41/2/4", 0, kDefaultEpoch).layout;  // 16 ids a tick
constexpr size_t kCounters = 2;
constexpr size_t kSessions = 3;
constexpr size_t kMost = 8;  // transactions, readings

// Stores the tick (time unit) of a transaction's first id, and the number of transactions that
// committed before this transaction.
struct Transaction {
  uint64_t first_tick = UINT64_MAX;
  uint64_t committed = UINT64_MAX;  // number of earlier commits
};

struct Reading {
  uint64_t began = UINT64_MAX;  // number of the step
  uint64_t returned = UINT64_MAX;
  uint64_t settled = 0;
  uint64_t seen = 0;  // transactions in the reader's snapshot
};

// Stores the state that all simulated sessions (actors) share. In this model commits and snapshots
// are single steps, because PostgreSQL makes both under one lock.
struct World {
  Shard counters[kCounters]{};
  OpenMints slots[kSessions]{};
  OpenMints prepared{};  // one prepared transaction at most
  Settled settled{};
  Transaction transactions[kMost]{};
  Reading readings[kMost]{};
  uint64_t commits = 0;
  uint64_t steps = 0;

  void begin(uint64_t floor_tick) {
    for (Shard& counter : counters) counter.raise_floor(layout.first_position(floor_tick));
  }

  void mint(MintRecord& record, size_t session, size_t counter, uint64_t now, size_t transaction) {
    const Bounds bounds{now, 100, UINT64_MAX, 0};
    const Claim claim = claim_recorded(
        record, [&]() -> OpenMints& { return slots[session]; }, counters[counter], layout, bounds,
        1);
    // For each step, a simulated session runs again from its beginning, so the following assignment
    // must be repeatable.
    Transaction& of = transactions[transaction];
    of.first_tick = std::min(of.first_tick, layout.tick_of_position(claim.first));
  }

  void commit(size_t transaction) {
    stepped::step([&] { return transactions[transaction].committed = commits++; });
  }

  void read(size_t reading, uint64_t clock, size_t sessions) {
    Reading& of = readings[reading];
    of.began = stepped::step([&] { return steps++; });
    of.settled = settled.settle(
        layout, counters, clock,
        [&] {
          uint64_t least = OpenMints::kNone;
          for (size_t i = 0; i < sessions; ++i) least = std::min(least, slots[i].since());
          return least;
        },
        [&] { return prepared.since(); });
    of.seen = stepped::step([&] { return commits; });
    of.returned = stepped::step([&] { return steps++; });
  }

  void check() const {
    for (const Reading& reading : readings) {
      for (const Transaction& transaction : transactions) {
        if (transaction.committed < reading.seen) continue;
        EXPECT_GE(transaction.first_tick, reading.settled)
            << "appears after " << reading.settled << " was settled";
      }
      if (reading.began == UINT64_MAX) continue;
      for (const Reading& earlier : readings) {
        if (earlier.returned > reading.began) continue;
        EXPECT_GE(reading.settled, earlier.settled) << "the cursor went back";
      }
    }
  }
};

// Runs the simulated sessions (actors) in all orders with at most `preemptions` interruptions of a
// session. For each order of steps, explore() creates a new shared state (`world`), and make(world)
// creates the simulated sessions that use the shared state.
template <class Make>
size_t explore(int preemptions, uint64_t floor_tick, Make make, int failures = 0) {
  Schedules schedules(preemptions, failures);
  size_t count = 0;
  do {
    World world;
    world.begin(floor_tick);
    std::vector<Actor> actors;
    for (auto& body : make(world)) actors.push_back({std::move(body), {}, 0, false, false, {}});
    std::vector<Actor*> pointers;
    pointers.reserve(actors.size());
    for (Actor& actor : actors) pointers.push_back(&actor);
    schedules.run(pointers);
    world.check();
    ++count;
  } while (schedules.next() && !testing::Test::HasFailure());
  return count;
}

using Bodies = std::vector<std::function<void()>>;

Bodies writer_and_reader(World& world, uint64_t writes_at, uint64_t reads_at) {
  return {[&world, writes_at] {
            MintRecord record;
            world.mint(record, 0, 0, writes_at, 0);
            world.commit(0);
            record.close(world.slots[0]);
          },
          [&world, reads_at] { world.read(0, reads_at, 1); }};
}

TEST(SettledModel, AWriterAndAReaderInEverySchedule) {
  constexpr int kAll = 1000;
  const size_t schedules =
      explore(kAll, 1, [](World& world) { return writer_and_reader(world, 10, 12); });
  std::printf("%zu schedules\n", schedules);
  EXPECT_GT(schedules, 10'000u);
}

// Tests a writer and a reader with different values of the writer's clock, the reader's clock, and
// the shard counters. Exchanges fail spuriously.
TEST(SettledModel, AWriterAndAReaderOfAllClocks) {
  size_t schedules = 0;
  for (const uint64_t writes_at : {9, 10, 11, 12})
    for (const uint64_t reads_at : {9, 11, 12})
      for (const uint64_t floor : {1, 10, 11})
        schedules += explore(
            2, floor, [&](World& world) { return writer_and_reader(world, writes_at, reads_at); },
            1);
  std::printf("%zu schedules\n", schedules);
  EXPECT_GT(schedules, 10'000u);
}

// When a transaction claims its second id, its clock shows an earlier time than at its first claim.
TEST(SettledModel, TheClockGoesBackWithinATransaction) {
  const size_t schedules = explore(4, 1, [&](World& world) -> Bodies {
    return {[&] {
              MintRecord record;
              world.mint(record, 0, 0, 14, 0);
              world.mint(record, 0, 1, 10, 0);
              world.commit(0);
              record.close(world.slots[0]);
            },
            [&] { world.read(0, 12, 1); }};
  });
  std::printf("%zu schedules\n", schedules);
  EXPECT_GT(schedules, 1'000u);
}

// A session runs two transactions. After the first commit, the session's slot in shared memory
// contains the tick (time unit) of the second transaction.
TEST(SettledModel, TheNextTransactionOfTheSession) {
  const size_t schedules = explore(4, 1, [&](World& world) -> Bodies {
    return {[&] {
              MintRecord record;
              world.mint(record, 0, 0, 10, 0);
              world.commit(0);
              record.close(world.slots[0]);
              world.mint(record, 0, 1, 10, 1);
              world.commit(1);
              record.close(world.slots[0]);
            },
            [&] {
              world.read(0, 12, 1);
              world.read(1, 13, 1);
            }};
  });
  std::printf("%zu schedules\n", schedules);
  EXPECT_GT(schedules, 10'000u);
}

TEST(SettledModel, TwoReaders) {
  size_t schedules = 0;
  for (const uint64_t other : {11, 12, 13})
    schedules += explore(3, 1, [&](World& world) -> Bodies {
      return {[&] {
                MintRecord record;
                world.mint(record, 0, 1, 10, 0);
                world.commit(0);
                record.close(world.slots[0]);
              },
              [&] { world.read(0, 12, 1); }, [&] { world.read(1, other, 1); }};
    });
  std::printf("%zu schedules\n", schedules);
  EXPECT_GT(schedules, 10'000u);
}

TEST(SettledModel, ThreeWriters) {
  const size_t schedules = explore(2, 1, [&](World& world) -> Bodies {
    const auto writer = [&world](size_t session, size_t counter, uint64_t now) {
      return [&world, session, counter, now] {
        MintRecord record;
        world.mint(record, session, counter, now, session);
        world.commit(session);
        record.close(world.slots[session]);
      };
    };
    return {writer(0, 0, 10), writer(1, 0, 12), writer(2, 1, 11), [&] {
              world.read(0, 12, kSessions);
              world.read(1, 12, kSessions);
            }};
  });
  std::printf("%zu schedules\n", schedules);
  EXPECT_GT(schedules, 10'000u);
}

// One session prepares a transaction, and another session commits it. The first session registers
// the prepared transaction before it clears its own slot (its entry for an open transaction that
// has minted ids).
TEST(SettledModel, APreparedTransaction) {
  const size_t schedules = explore(4, 1, [&](World& world) -> Bodies {
    return {[&] {
              MintRecord record;
              world.mint(record, 0, 0, 10, 0);
              world.prepared.open(record.since());
              record.close(world.slots[0]);
            },
            [&] {
              if (world.prepared.since() == OpenMints::kNone) return;  // not prepared yet
              world.commit(0);
              world.prepared.close();
            },
            [&] { world.read(0, 12, 1); }};
  });
  std::printf("%zu schedules\n", schedules);
  EXPECT_GT(schedules, 5'000u);
}

}  // namespace
}  // namespace snowflake_interrupted
