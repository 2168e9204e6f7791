// Why calls are refused.
#pragma once

#include <cstdint>

namespace snowflake::pg {

// Why a call was refused; refusal_label() has their names. The order is that of the view.
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
};
inline constexpr int kCauses = 15;

const char* refusal_label(Cause cause);

// Whether the cause is one of the whole database: then it is over as soon as anything is minted.
bool is_of_database(Cause cause);

}  // namespace snowflake::pg
