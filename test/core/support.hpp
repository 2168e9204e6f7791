#pragma once

#include <gtest/gtest.h>
#include <regex.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout.hpp"
#include "core/shard.hpp"

namespace snowflake {

// Returns a new random seed, or the value of SNOWFLAKE_TEST_SEED. The first call of test_seed()
// prints the seed.
inline uint64_t test_seed() {
  static const uint64_t seed = [] {
    uint64_t value = std::random_device{}();
    if (const char* text = std::getenv("SNOWFLAKE_TEST_SEED"); text != nullptr && *text != '\0') {
      char* end = nullptr;
      value = std::strtoull(text, &end, 0);
      if (*end != '\0') {
        std::fprintf(stderr, "SNOWFLAKE_TEST_SEED is not a number: %s\n", text);
        std::exit(2);
      }
    }
    std::printf("SNOWFLAKE_TEST_SEED=%" PRIu64 "\n", value);
    std::fflush(stdout);  // before fork() copies the buffer
    return value;
  }();
  return seed;
}

// Generates random numbers by SplitMix64. The state of the random generator is one number, so every
// thread and schedule can have its own generator.
class Random {
 public:
  explicit Random(uint64_t salt) : state_(test_seed() + salt * 0xD1342543DE82EF95) {}

  // Returns a generator that ignores test_seed(), and produces the same numbers in every run of the
  // tests.
  static Random fixed(uint64_t salt) {
    Random random(0);
    random.state_ = salt * 0xD1342543DE82EF95;
    return random;
  }

  uint64_t any() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t end) { return any() % end; }
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool percent(uint64_t chance) { return below(100) < chance; }

 private:
  uint64_t state_;
};

// Sanitizers make the code slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr uint64_t kEffort = 1;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr uint64_t kEffort = 1;
#else
inline constexpr uint64_t kEffort = 4;
#endif
#else
inline constexpr uint64_t kEffort = 4;
#endif

// Matches POSIX extended regular expressions. The class std::regex is not used, because g++ 12
// shows warnings for std::regex with -fsanitize=address.
class Pattern {
 public:
  explicit Pattern(const char* text) {
    if (regcomp(&compiled_, text, REG_EXTENDED) != 0) throw std::invalid_argument(text);
  }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;

  // Returns the groups of a match, or an empty vector if the whole text does not match.
  std::vector<std::string> match(const std::string& text) const {
    regmatch_t groups[8];
    std::vector<std::string> found;
    if (regexec(&compiled_, text.c_str(), 8, groups, 0) != 0) return found;
    for (const auto& group : groups)
      found.push_back(group.rm_so < 0
                          ? ""
                          : text.substr(static_cast<size_t>(group.rm_so),
                                        static_cast<size_t>(group.rm_eo - group.rm_so)));
    return found;
  }

 private:
  regex_t compiled_;
};

inline Layout layout_from(std::string_view text, uint32_t tick_ms = 0,
                          int64_t epoch_ms = kDefaultEpoch) {
  const auto parsed = parse_layout(text, tick_ms, epoch_ms);
  EXPECT_EQ(parsed.error, LayoutError::none) << text;
  return parsed.layout;
}

// Calls `visit` for each id layout that has at most 64 bits and a time unit (tick) of 1 ms. About
// 180,000 layouts exist. Stops at the first failure.
template <class Visit>
void for_each_division(Visit visit) {
  for (unsigned time = kMinTimeBits; time <= kMaxTimeBits; ++time)
    for (unsigned region = 0; region <= kMaxOriginBits; ++region)
      for (unsigned local = 0; region + local <= kMaxOriginBits; ++local)
        for (unsigned sequence = 0; sequence <= kMaxSequenceBits; ++sequence)
          if (time + region + local + sequence <= 64 && !testing::Test::HasFailure())
            visit(Layout{static_cast<uint8_t>(time), static_cast<uint8_t>(region),
                         static_cast<uint8_t>(local), static_cast<uint8_t>(sequence), 1,
                         kDefaultEpoch});
}

inline Layout random_layout(Random& random) {
  for (;;) {
    constexpr uint32_t ticks[] = {1, 10, 100, 1000};
    const Layout layout{static_cast<uint8_t>(random.between(kMinTimeBits, kMaxTimeBits)),
                        static_cast<uint8_t>(random.below(9)),
                        static_cast<uint8_t>(random.below(17)),
                        static_cast<uint8_t>(random.below(kMaxSequenceBits + 1)),
                        ticks[random.below(4)],
                        static_cast<int64_t>(random.below(uint64_t{kEpochEnd}))};
    if (check(layout) == LayoutError::none) return layout;
  }
}

inline testing::AssertionResult all_distinct(std::vector<int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  const auto twin = std::adjacent_find(ids.begin(), ids.end());
  if (twin == ids.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "id " << *twin << " was issued twice";
}

inline testing::AssertionResult strictly_increasing(const std::vector<int64_t>& ids) {
  const auto drop = std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>());
  if (drop == ids.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "id " << drop[0] << " is followed by " << drop[1];
}

inline void PrintTo(const Layout& layout, std::ostream* out) {
  *out << +layout.time_bits << '/' << +layout.region_bits << '+' << +layout.shard_bits << '/'
       << +layout.sequence_bits << " tick " << layout.tick_ms << " epoch " << layout.epoch_ms;
}

inline void PrintTo(LayoutError error, std::ostream* out) {
  *out << describe(error);
}

inline void PrintTo(Outcome outcome, std::ostream* out) {
  constexpr const char* names[] = {"claimed", "ahead_of_clock", "at_limit", "exhausted"};
  *out << names[static_cast<size_t>(outcome)];
}

}  // namespace snowflake
