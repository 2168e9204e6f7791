#include "../../extensions/alias/src/key_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "support.hpp"

namespace snowflake::alias {
namespace {

const std::string kHex = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

KeyLine parse(std::string_view line) {
  const auto exact = std::make_unique<char[]>(line.size());
  if (!line.empty()) std::memcpy(exact.get(), line.data(), line.size());
  auto parsed = parse_key_line({exact.get(), line.size()});
  if (!parsed.name.empty())  // the result outlives the buffer
    parsed.name =
        line.substr(static_cast<size_t>(parsed.name.data() - exact.get()), parsed.name.size());
  return parsed;
}

TEST(KeyFile, ALine) {
  for (const auto& text : {"photos 3 " + kHex, "\tphotos   3\t" + kHex + " \r"}) {
    const auto line = parse(text);
    ASSERT_EQ(line.error, LineError::none) << text;
    EXPECT_EQ(line.name, "photos");
    EXPECT_EQ(line.version, 3);
    for (size_t i = 0; i < kKeyBytes; ++i) EXPECT_EQ(line.key[i], i);
  }
  EXPECT_EQ(parse("A-b_c.9 0 " + kHex).name, "A-b_c.9");
}

TEST(KeyFile, Comments) {
  for (const char* text : {"", " ", "\t\r", "#", "# photos 3 x", "  #x", "#photos"}) {
    const auto line = parse(text);
    EXPECT_EQ(line.error, LineError::none) << text;
    EXPECT_TRUE(line.name.empty()) << text;
  }
}

TEST(KeyFile, InvalidLines) {
  const struct {
    std::string text;
    LineError error;
  } cases[] = {
      {"photos", LineError::fields},
      {"photos 3", LineError::fields},
      {"photos " + kHex, LineError::fields},
      {"photos 3 " + kHex + " x", LineError::fields},
      {"photos 3 " + kHex + " # mine", LineError::fields},
      {"ph/otos 3 " + kHex, LineError::name},
      {"ph\xC3\xB6tos 3 " + kHex, LineError::name},
      {std::string("ph\0tos 3 ", 9) + kHex, LineError::name},
      {std::string(64, 'n') + " 3 " + kHex, LineError::name},
      {"photos 5 " + kHex, LineError::version},
      {"photos -1 " + kHex, LineError::version},
      {"photos 03 " + kHex, LineError::version},
      {"photos x " + kHex, LineError::version},
      {"photos 3 " + kHex.substr(1), LineError::key},
      {"photos 3 " + kHex + "0", LineError::key},
      {"photos 3 g" + kHex.substr(1), LineError::key},
      {"photos 3 " + kHex.substr(0, 63) + "x", LineError::key},
  };
  for (const auto& c : cases) EXPECT_EQ(parse(c.text).error, c.error) << c.text;
  EXPECT_EQ(parse(std::string(63, 'n') + " 3 " + kHex).error, LineError::none);
}

TEST(KeyFile, EveryReasonIsASentence) {
  for (auto error : {LineError::fields, LineError::name, LineError::version, LineError::key}) {
    const std::string_view text = describe(error);
    EXPECT_TRUE(text.front() >= 'A' && text.front() <= 'Z' && text.back() == '.') << text;
  }
}

TEST(KeyFile, AnyTextIsALineOrAnError) {
  constexpr std::string_view likely = "photos 0123456789abcdefABCDEF#\t\r -_./";
  Random random(6);
  int lines = 0;
  for (uint64_t i = 0; i < 50'000 * kEffort; ++i) {
    std::string text = "photos 3 " + kHex;
    for (uint64_t edits = random.below(4); edits > 0; --edits) {
      const size_t at = random.below(text.size() + 1);
      const char c = random.percent(90) ? likely[random.below(likely.size())]
                                        : static_cast<char>(random.below(256));
      if (random.percent(30))
        text.insert(at, 1, c);
      else if (at < text.size() && random.percent(30))
        text.erase(at, 1);
      else if (at < text.size())
        text[at] = c;
    }
    static const Pattern good(
        "^[ \t\r]*[A-Za-z0-9_.-]{1,63}[ \t\r]+[0-4][ \t\r]+[0-9A-Fa-f]{64}[ \t\r]*$");
    static const Pattern comment("^[ \t\r]*(#.*)?$");
    if (text.find('\0') != std::string::npos || text.find('\n') != std::string::npos) continue;
    const auto line = parse(text);
    ASSERT_EQ(line.error == LineError::none,
              !good.match(text).empty() || !comment.match(text).empty())
        << text;
    ASSERT_EQ(!line.name.empty(), !good.match(text).empty()) << text;
    lines += !line.name.empty();
  }
  EXPECT_GT(lines, 1000);
}

}  // namespace
}  // namespace snowflake::alias
