#pragma once

#include <cstdint>

namespace snowflake::pg {

// Each value of Cause is a row of the view `refusals`, in the order of the view. The file
// refusal.hpp assigns each error to a row of the view.
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
  none,  // not counted
};
inline constexpr int kCauses = static_cast<int>(Cause::none);

struct CauseText {
  const char* label;    // in the view
  const char* what;     // in the log: a clause
  bool is_of_database;  // ends with the next id
};

const CauseText& text_of(Cause cause);

}  // namespace snowflake::pg
