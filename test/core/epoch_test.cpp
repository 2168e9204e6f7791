#include "core/epoch.hpp"

#include <gtest/gtest.h>

#include <ctime>

#include "support.hpp"

namespace snowflake {
namespace {

TEST(Epoch, TakesIsoDates) {
  const std::pair<const char*, int64_t> epochs[] = {
      {"1970-01-01", 0},
      {"2025-01-01", 1735689600000},
      {"2025-01-01 00:00", 1735689600000},
      {"2025-01-01T00:00:00", 1735689600000},
      {"2025-01-01 00:00:00Z", 1735689600000},
      {"2025-01-01 00:00:00+00", 1735689600000},
      {"2025-01-01 00:00:00.5", 1735689600500},
      {"2025-01-01 00:00:00.057Z", 1735689600057},
      {"2025-01-01 05:30:00+05:30", 1735689600000},
      {"2025-01-01 05:30:00+0530", 1735689600000},
      {"2024-12-31 16:00:00-08", 1735689600000},
      {"2011-08-24 21:07:01.721+00", 1314220021721},  // Instagram's
      {"2010-11-04 01:42:54.657", 1288834974657},     // Twitter's
      {"2024-02-29", 1709164800000},
      {"1314220021721", 1314220021721},
      {"0000000000000", 0},
  };
  for (const auto& [text, ms] : epochs) {
    EXPECT_TRUE(parse_epoch(text).valid) << text;
    EXPECT_EQ(parse_epoch(text).ms, ms) << text;
  }
}

TEST(Epoch, RefusesFormatsThatDependOnASetting) {
  for (const char* text : {"",
                           "now",
                           "today",
                           "infinity",
                           "-infinity",
                           "epoch",
                           "01.02.2025",
                           "1/2/2025",
                           "02-01-2025",
                           "20250101",
                           "2025-1-1",
                           "25-01-01",
                           "2025-01-01 ",
                           " 2025-01-01",
                           "2025-01-01 BC",
                           "2025-13-01",
                           "2025-00-01",
                           "2025-02-29",
                           "2025-01-32",
                           "2025-01-00",
                           "2025-01-01 24:00",
                           "2025-01-01 00:60",
                           "2025-01-01 00:00:60",
                           "2025-01-01 00:00:00.",
                           "2025-01-01 00:00:00.0001",
                           "2025-01-01 00:00:00+16",
                           "2025-01-01 00:00:00+05:60",
                           "2025-01-01 00:00:00+0",
                           "2025-01-01 00:00:00+05:",
                           "2025-01-01 00:00:00 Europe/Berlin",
                           "2025-01-01 0:00",
                           "2025-01-01T",
                           "2025-01-01X00:00",
                           "131422002172",
                           "13142200217210",
                           "131422002172x",
                           "-314220021721",
                           "2025-01-01T00:00:00ZZ",
                           "2025-01"})
    EXPECT_FALSE(parse_epoch(text).valid) << text;
}

// For each of the first 40,000 days since 1970, the C library writes the date as text. The function
// parse_epoch() must convert the text of each date to midnight UTC of the date.
TEST(Epoch, CountsDaysAsTheCalendarDoes) {
  for (int64_t day = 0; day < 40'000; day += 1) {
    const time_t at = static_cast<time_t>(day * 86400);
    tm broken{};
    gmtime_r(&at, &broken);
    char text[32];
    strftime(text, sizeof text, "%Y-%m-%d", &broken);
    ASSERT_EQ(parse_epoch(text).ms, day * 86'400'000) << text;
  }
}

TEST(Epoch, AnyBytesAreReadOrRefused) {
  Random random(7);
  const std::string_view some = "0123456789-+:.TZ 2025-01-01";
  for (int i = 0; i < 200'000; ++i) {
    std::string text(random.below(30), ' ');
    for (char& c : text)
      c = random.below(8) == 0 ? static_cast<char>(random.below(256))
                               : some[random.below(some.size())];
    const auto parsed = parse_epoch(text);
    if (!parsed.valid) {
      ASSERT_EQ(parsed.ms, 0);
    }
  }
}

}  // namespace
}  // namespace snowflake
