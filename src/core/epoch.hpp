// Parses an epoch: an ISO 8601 date with an optional time and offset from UTC, or 13 digits.
// Thirteen digits are milliseconds since 1970, the form in which some products publish an epoch.
// Other date formats are errors, because the meaning of "01.02.2025" depends on DateStyle.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace snowflake {

struct ParsedEpoch {
  int64_t ms;  // since 1970-01-01 UTC
  bool valid;
};

namespace detail {

// Removes exactly `digits` digits from the front of a text. Returns the value of the digits, or -1
// if the text does not begin with `digits` digits.
constexpr int take_digits(std::string_view& text, size_t digits) noexcept {
  if (text.size() < digits) return -1;
  int value = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

constexpr bool take_char(std::string_view& text, char c) noexcept {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// Parses an offset from UTC, which is an empty text, "Z", +05, +0530 or +05:30.
constexpr bool take_offset(std::string_view& text, int& minutes) noexcept {
  minutes = 0;
  if (take_char(text, 'Z')) return true;
  const bool east = take_char(text, '+');
  if (!east && !take_char(text, '-')) return true;
  const int hours = take_digits(text, 2);
  int rest = 0;
  const bool colon = take_char(text, ':');
  if (colon || !text.empty()) rest = take_digits(text, 2);
  if (hours < 0 || hours > 15 || rest < 0 || rest > 59) return false;
  minutes = (hours * 60 + rest) * (east ? 1 : -1);
  return true;
}

// Parses up to three digits after the decimal point of a second, and returns the fraction in ms.
// Returns -1 if the text does not begin with a digit.
constexpr int take_fraction(std::string_view& text) noexcept {
  int ms = 0;
  int digits = 0;
  for (; digits < 3 && !text.empty() && text.front() >= '0' && text.front() <= '9'; ++digits) {
    ms = ms * 10 + (text.front() - '0');
    text.remove_prefix(1);
  }
  if (digits == 0) return -1;
  for (; digits < 3; ++digits) ms *= 10;
  return ms;
}

}  // namespace detail

constexpr ParsedEpoch parse_epoch(std::string_view text) noexcept {
  constexpr ParsedEpoch invalid{0, false};
  if (text.size() == 13 && text.find_first_not_of("0123456789") == text.npos) {
    int64_t ms = 0;
    for (const char digit : text) ms = ms * 10 + (digit - '0');
    return {ms, true};
  }

  const int year = detail::take_digits(text, 4);
  if (year < 0 || !detail::take_char(text, '-')) return invalid;
  const int month = detail::take_digits(text, 2);
  if (month < 0 || !detail::take_char(text, '-')) return invalid;
  const int day = detail::take_digits(text, 2);
  if (day < 0) return invalid;
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return invalid;

  int hour = 0;
  int minute = 0;
  int second = 0;
  int ms = 0;
  if (detail::take_char(text, ' ') || detail::take_char(text, 'T')) {
    hour = detail::take_digits(text, 2);
    if (hour < 0 || hour > 23 || !detail::take_char(text, ':')) return invalid;
    minute = detail::take_digits(text, 2);
    if (minute < 0 || minute > 59) return invalid;
    if (detail::take_char(text, ':')) {
      second = detail::take_digits(text, 2);
      if (second < 0 || second > 59) return invalid;
      if (detail::take_char(text, '.')) ms = detail::take_fraction(text);
      if (ms < 0) return invalid;
    }
  }
  int offset = 0;
  if (!detail::take_offset(text, offset) || !text.empty()) return invalid;

  const int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  const int64_t seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second;
  return {seconds * 1000 + ms, true};
}

static_assert(parse_epoch("2025-01-01").ms == 1735689600000);
static_assert(parse_epoch("2025-01-01T05:30:00.250+05:30").ms == 1735689600250);
static_assert(!parse_epoch("01.02.2025").valid && !parse_epoch("2025-02-29").valid);

}  // namespace snowflake
