#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

enum class GeneratorError : uint8_t {
  none,
  invalid_argument,
  file_system,
  file_exists,
  file_missing,
  file_in_use,
  file_damaged,
  file_of_another,
  forked,
  layout_exhausted,
  clock_before_epoch,
  clock_jumped,
  mark_ahead,
  clock_behind,
};

// Each message of describe() states the error, and then what the user must do.
constexpr const char* describe(GeneratorError error) noexcept {
  switch (error) {
    case GeneratorError::none:
      return "";
    case GeneratorError::invalid_argument:
      return "The layout, region, shard or an option is out of range.";
    case GeneratorError::file_system:
      return "The mark file cannot be opened, read or written. See errno.";
    case GeneratorError::file_exists:
      return "The mark file exists already. Open it instead of creating it.";
    case GeneratorError::file_missing:
      return "The mark file does not exist. Create it only if no program has minted in the region.";
    case GeneratorError::file_in_use:
      return "Another process uses the mark file. Give each process its own region and its own "
             "file.";
    case GeneratorError::file_damaged:
      return "The mark file is damaged. Wait until the clock is after every id of the region. Then "
             "delete the file and create it again.";
    case GeneratorError::file_of_another:
      return "The mark file was created with another layout or region. Pass the layout and region "
             "with which the file was created.";
    case GeneratorError::forked:
      return "The process was forked. In the child process, create a generator with another "
             "region.";
    case GeneratorError::layout_exhausted:
      return "The layout has no time values left. Use a layout with more time bits.";
    case GeneratorError::clock_before_epoch:
      return "The clock is before the epoch of the layout. Correct the clock.";
    case GeneratorError::clock_jumped:
      return "The clock jumped ahead. Correct the clock. If the clock is right, start the program "
             "again.";
    case GeneratorError::mark_ahead:
      return "The mark in the file is ahead of the clock. Wait, or correct the clock.";
    case GeneratorError::clock_behind:
      return "The clock is behind the ids of the shard. Wait, or correct the clock.";
  }
  return "";
}

}  // namespace snowflake
