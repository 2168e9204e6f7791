#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "core/layout.hpp"
#include "support.hpp"

namespace snowflake {
namespace {

// The buffer has no spare byte, so that AddressSanitizer reports a read past the end.
ParsedLayout parse(std::string_view text, uint32_t tick_ms = 0, int64_t epoch_ms = kDefaultEpoch) {
  const auto exact = std::make_unique<char[]>(text.size());
  if (!text.empty()) std::memcpy(exact.get(), text.data(), text.size());
  return parse_layout({exact.get(), text.size()}, tick_ms, epoch_ms);
}

TEST(LayoutParse, Presets) {
  const Layout instagram{41, 0, 13, 10, 1, kDefaultEpoch};
  const Layout twitter{41, 5, 5, 12, 1, kDefaultEpoch};
  const Layout wide{41, 5, 13, 5, 1, kDefaultEpoch};
  const Layout js53{38, 0, 7, 8, 10, kDefaultEpoch};
  EXPECT_EQ(layout_from("instagram"), instagram);
  EXPECT_EQ(layout_from("instagram", 1), instagram);
  EXPECT_EQ(layout_from("twitter"), twitter);
  EXPECT_EQ(layout_from("wide"), wide);
  EXPECT_EQ(layout_from("js53"), js53);
  EXPECT_EQ(layout_from("js53", 10), js53);
}

TEST(LayoutParse, Bits) {
  EXPECT_EQ(layout_from("41/3+10/10"), (Layout{41, 3, 10, 10, 1, kDefaultEpoch}));
  EXPECT_EQ(layout_from("28/22/13", 1000, 0), (Layout{28, 0, 22, 13, 1000, 0}));
  EXPECT_EQ(layout_from("41/0+0/10"), (Layout{41, 0, 0, 10, 1, kDefaultEpoch}));
  EXPECT_EQ(layout_from("20/0/0"), (Layout{20, 0, 0, 0, 1, kDefaultEpoch}));
  EXPECT_EQ(layout_from("53/0/11", 1), (Layout{53, 0, 0, 11, 1, kDefaultEpoch}));
  EXPECT_EQ(layout_from("40/24/0", 100), (Layout{40, 0, 24, 0, 100, kDefaultEpoch}));
  EXPECT_EQ(layout_from("40/24+0/0"), (Layout{40, 24, 0, 0, 1, kDefaultEpoch}));
  EXPECT_EQ(layout_from("42/0/22"), (Layout{42, 0, 0, 22, 1, kDefaultEpoch}));
}

TEST(LayoutParse, SyntaxErrors) {
  for (const char* text : {"",
                           "x",
                           " ",
                           "/",
                           "//",
                           "41",
                           "41/",
                           "41/13",
                           "41/13/",
                           "/13/10",
                           "41//10",
                           "41/+3/10",
                           "41/3+/10",
                           "41/+/10",
                           "41/3+4+5/10",
                           "3+4/10/10",
                           "41/13/5+5",
                           "41/13/10/2",
                           "41/13/10/",
                           "41/13/10 ",
                           " 41/13/10",
                           "41 /13/10",
                           "41/13/10x",
                           "-41/13/10",
                           "41/-13/10",
                           "+41/13/10",
                           "41/13/1e1",
                           "041/13/10",
                           "41/013/10",
                           "41/13/010",
                           "41/00+13/10",
                           "0x29/13/10",
                           "41,13,10",
                           "41/13/99999999999999999999",
                           "4294967337/13/10",
                           "18446744073709551657/13/10",
                           "41/13/4294967306",
                           "41/4294967299+10/10",
                           "1000/13/10",
                           "instagram ",
                           " instagram",
                           "Instagram",
                           "instagra",
                           "instagram2",
                           "instagram/10",
                           "js54"})
    EXPECT_EQ(parse(text).error, LayoutError::syntax) << '"' << text << '"';
  EXPECT_EQ(parse(std::string_view("41/13/10\0", 9)).error, LayoutError::syntax);
  EXPECT_EQ(parse(std::string_view("instagram\0", 10)).error, LayoutError::syntax);
}

TEST(LayoutParse, EachFieldHasItsBounds) {
  for (const char* text : {"19/13/10", "54/0/0", "0/0/0", "255/0/0", "256/13/10", "297/13/10"})
    EXPECT_EQ(parse(text).error, LayoutError::time_bits) << text;
  for (const char* text : {"30/25/0", "30/24+1/0", "30/1+24/0", "30/255+1/0", "30/1+255/0",
                           "30/256/0", "30/256+5/0", "30/13+256/0"})
    EXPECT_EQ(parse(text).error, LayoutError::origin_bits) << text;
  for (const char* text : {"30/0/23", "30/0/256", "30/0/266", "30/0/999"})
    EXPECT_EQ(parse(text).error, LayoutError::sequence_bits) << text;
  for (const char* text : {"41/13/11", "42/13/10", "41/14/10", "41/7+7/10", "53/12/0", "53/24/22"})
    EXPECT_EQ(parse(text).error, LayoutError::total_bits) << text;
}

TEST(LayoutParse, TickIsAPowerOfTenUpToASecond) {
  for (const uint32_t tick : {1u, 10u, 100u, 1000u})
    EXPECT_EQ(parse("38/7/8", tick).error, LayoutError::none) << tick;
  for (const uint32_t tick : {2u, 5u, 9u, 11u, 50u, 999u, 1001u, 10000u, UINT32_MAX})
    EXPECT_EQ(parse("38/7/8", tick).error, LayoutError::tick) << tick;
  EXPECT_EQ(parse("38/7/8", 0).layout.tick_ms, 1u);
}

TEST(LayoutParse, APresetKeepsItsTick) {
  EXPECT_EQ(parse("instagram", 10).error, LayoutError::preset_tick);
  EXPECT_EQ(parse("twitter", 1000).error, LayoutError::preset_tick);
  EXPECT_EQ(parse("js53", 1).error, LayoutError::preset_tick);
  EXPECT_EQ(parse("js53", 7).error, LayoutError::preset_tick);
}

TEST(LayoutParse, EpochBounds) {
  for (const char* text : {"instagram", "41/13/10"}) {
    for (const int64_t epoch : {int64_t{0}, int64_t{1}, kDefaultEpoch, kEpochEnd - 1})
      EXPECT_EQ(parse(text, 0, epoch).error, LayoutError::none) << epoch;
    for (const int64_t epoch : {int64_t{-1}, kEpochEnd, kEndOfTimestamps, INT64_MIN, INT64_MAX})
      EXPECT_EQ(parse(text, 0, epoch).error, LayoutError::epoch) << epoch;
  }
}

TEST(LayoutParse, EndOfTime) {
  const struct {
    const char* longest;
    const char* too_long;
    uint32_t tick_ms;
  } cases[] = {{"49/0/0", "50/0/0", 10}, {"46/0/0", "47/0/0", 100}, {"43/0/0", "44/0/0", 1000}};
  for (const auto& c : cases) {
    EXPECT_EQ(parse(c.longest, c.tick_ms, kEpochEnd - 1).error, LayoutError::none) << c.longest;
    EXPECT_EQ(parse(c.too_long, c.tick_ms, 0).error, LayoutError::end_of_time) << c.too_long;
  }
  EXPECT_EQ(parse("53/0/0", 1, kEpochEnd - 1).error, LayoutError::none);
}

TEST(LayoutParse, EveryErrorIsASentence) {
  EXPECT_STREQ(describe(LayoutError::none), "");
  for (auto error = LayoutError::syntax; error <= LayoutError::end_of_time;
       error = static_cast<LayoutError>(static_cast<int>(error) + 1)) {
    const std::string_view text = describe(error);
    ASSERT_FALSE(text.empty());
    EXPECT_TRUE(text.front() >= 'A' && text.front() <= 'Z') << text;
    EXPECT_EQ(text.back(), '.') << text;
  }
}

std::optional<Layout> expected(const std::string& text) {
  static const Pattern grammar(
      "^(0|[1-9][0-9]{0,2})/((0|[1-9][0-9]{0,2})[+])?(0|[1-9][0-9]{0,2})/(0|[1-9][0-9]{0,2})$");
  const auto match = grammar.match(text);
  if (match.empty()) return std::nullopt;
  const int time = std::stoi(match[1]);
  const int region = match[2].empty() ? 0 : std::stoi(match[3]);
  const int local = std::stoi(match[4]);
  const int sequence = std::stoi(match[5]);
  if (time < 20 || time > 53 || region + local > 24 || sequence > 22 ||
      time + region + local + sequence > 64)
    return std::nullopt;
  return Layout{static_cast<uint8_t>(time),
                static_cast<uint8_t>(region),
                static_cast<uint8_t>(local),
                static_cast<uint8_t>(sequence),
                1,
                kDefaultEpoch};
}

TEST(LayoutParse, AgreesWithTheGrammar) {
  constexpr std::string_view alphabet = "0123456789//++ x-";
  Random random(4);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = std::to_string(random.between(15, 58)) + '/' +
                       (random.percent(50) ? std::to_string(random.below(14)) + '+' : "") +
                       std::to_string(random.below(14)) + '/' + std::to_string(random.below(26));
    for (uint64_t edits = random.below(3); edits > 0; --edits) {
      const size_t at = random.below(text.size() + 1);
      const char c = alphabet[random.below(alphabet.size())];
      if (random.percent(50) || at == text.size())
        text.insert(at, 1, c);
      else if (random.percent(50))
        text[at] = c;
      else
        text.erase(at, 1);
    }
    const auto parsed = parse(text);
    const auto layout = expected(text);
    ASSERT_EQ(parsed.error == LayoutError::none, layout.has_value()) << '"' << text << '"';
    if (!layout) continue;
    ASSERT_EQ(parsed.layout, *layout) << '"' << text << '"';
    ++accepted;
  }
  EXPECT_GT(accepted, 1000);
}

TEST(LayoutParse, SurvivesGarbage) {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random.below(24), '\0');
    for (char& c : text) c = static_cast<char>(random.any());
    const auto parsed =
        parse(text, static_cast<uint32_t>(random.any()), static_cast<int64_t>(random.any()));
    ASSERT_NE(parsed.error, LayoutError::none);
    ASSERT_STRNE(describe(parsed.error), "");
  }
}

}  // namespace
}  // namespace snowflake
