// A published limit carries along what was done before: ThreadSanitizer sees whether it does.
#include "core/limit.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace snowflake {
namespace {

TEST(Limit, OnlyRises) {
  const auto limit = std::make_unique<Limit>();
  EXPECT_EQ(limit->read(), 0u);
  limit->publish(10);
  limit->publish(7);
  EXPECT_EQ(limit->read(), 10u);
  limit->publish(11);
  EXPECT_EQ(limit->read(), 11u);
}

TEST(Limit, BeginsAnewAfterItIsWithdrawn) {
  const auto limit = std::make_unique<Limit>();
  limit->publish(10);
  limit->withdraw();
  EXPECT_EQ(limit->read(), 0u);
  limit->publish(3);
  EXPECT_EQ(limit->read(), 3u);
}

// `raised` stands for the words, and is no atomic on purpose: were publish() not a release and
// read() not an acquire, this would be a data race, and ThreadSanitizer reports it on any machine.
TEST(Limit, IsSeenWithWhatWasDoneBefore) {
  for (uint64_t round = 1; round <= 200; ++round) {
    const auto limit = std::make_unique<Limit>();
    uint64_t raised = 0;
    std::thread publisher([&] {
      raised = round;
      limit->publish(round);
    });
    while (limit->read() < round) std::this_thread::yield();
    EXPECT_EQ(raised, round);
    publisher.join();
  }
}

}  // namespace
}  // namespace snowflake
