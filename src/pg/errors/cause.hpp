#pragma once

#include <cstdint>

namespace snowflake::pg {

// Each value of Cause is a row of the view `refusals`, in the order of the view. The file
// refusal.hpp assigns each error to a row of the view `refusals`.
enum class Cause : uint8_t {
  clock_behind,
  clock_jumped,
  clock_before_epoch,
  waited_too_long,
  mark_ahead,
  mark_lost,
  seal,
  not_owned,
  id_ahead,
  exhausted,
  lease,
  read_only,
  commit_wait,
  mark_unsafe,
  too_many_databases,
  state_missing,
  clone,
  unsynchronized,
  none,  // the error is not counted
};
inline constexpr int kCauses = static_cast<int>(Cause::none);

struct CauseText {
  const char* label;    // the label in the view `refusals`
  const char* what;     // describes the refused calls in the log message
  bool is_of_database;  // the next minted id shows that the cause of the refused calls has ended
};

const CauseText& text_of(Cause cause);

}  // namespace snowflake::pg
