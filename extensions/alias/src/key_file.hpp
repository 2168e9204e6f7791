// Parses the key file. Each line of the key file has a name, a version and a key of 64 hexadecimal
// digits:
//
//     # name   version  key
//     photos   1        2b7e...
//     photos   0        99aa...
//
// If several lines have the same name, only the first key encrypts ids, and all keys decrypt
// aliases. Blank lines and lines that begin with # are ignored. An error message contains the
// number of the invalid line, but never the contents of the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace snowflake::alias {

inline constexpr size_t kKeyBytes = 32;
inline constexpr size_t kMaxNameLength = 63;

// An alias of eleven characters has room for five versions: 5 * 2^63 < 62^11.
inline constexpr unsigned kVersions = 5;

enum class LineError : uint8_t { none, fields, name, version, key };

constexpr const char* describe(LineError error) noexcept {
  switch (error) {
    case LineError::none:
      return "";
    case LineError::fields:
      return "A line has a name, a version and a key, separated by blanks.";
    case LineError::name:
      return "A name has 1 to 63 characters a-z, A-Z, 0-9, \"_\", \"-\" and \".\".";
    case LineError::version:
      return "A version is a digit, 0 to 4.";
    case LineError::key:
      return "A key has 64 hexadecimal digits.";
  }
  return "";
}

struct KeyLine {
  std::string_view name;  // empty if the line has no key
  uint8_t version;
  uint8_t key[kKeyBytes];
  LineError error;
};

namespace detail {

constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r';
}

constexpr std::string_view take_field(std::string_view& line) noexcept {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  size_t length = 0;
  while (length < line.size() && !is_blank(line[length])) ++length;
  const auto field = line.substr(0, length);
  line.remove_prefix(length);
  return field;
}

constexpr bool is_name(std::string_view text) noexcept {
  for (const char c : text)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' &&
        c != '-' && c != '.')
      return false;
  return text.size() >= 1 && text.size() <= kMaxNameLength;
}

constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace detail

constexpr KeyLine parse_key_line(std::string_view line) noexcept {
  const auto wrong = [](LineError error) { return KeyLine{{}, 0, {}, error}; };
  const auto name = detail::take_field(line);
  if (name.empty() || name.front() == '#') return {};
  const auto version = detail::take_field(line);
  const auto key = detail::take_field(line);
  if (key.empty() || !detail::take_field(line).empty()) return wrong(LineError::fields);
  if (!detail::is_name(name)) return wrong(LineError::name);
  if (version.size() != 1 || version[0] < '0' || version[0] >= char{'0' + kVersions})
    return wrong(LineError::version);
  if (key.size() != 2 * kKeyBytes) return wrong(LineError::key);
  KeyLine result{name, static_cast<uint8_t>(version[0] - '0'), {}, LineError::none};
  for (size_t i = 0; i < kKeyBytes; ++i) {
    const int high = detail::hex_digit(key[2 * i]);
    const int low = detail::hex_digit(key[2 * i + 1]);
    if (high < 0 || low < 0) return wrong(LineError::key);
    result.key[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return result;
}

}  // namespace snowflake::alias
