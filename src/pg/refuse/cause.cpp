#include "pg/refuse/cause.hpp"

namespace snowflake::pg {

const char* refusal_label(Cause cause) {
  constexpr const char* kLabels[kCauses] = {"clock_behind",
                                            "clock_jumped",
                                            "clock_before_epoch",
                                            "waited_too_long",
                                            "mark_ahead",
                                            "mark_lost",
                                            "seal",
                                            "not_owned",
                                            "id_ahead",
                                            "exhausted",
                                            "lease",
                                            "read_only",
                                            "commit_wait",
                                            "mark_unsafe",
                                            "too_many_databases"};
  return kLabels[static_cast<int>(cause)];
}

bool is_of_database(Cause cause) {
  switch (cause) {
    case Cause::clock_jumped:
    case Cause::clock_before_epoch:
    case Cause::mark_ahead:
    case Cause::mark_lost:
    case Cause::mark_unsafe:
    case Cause::too_many_databases:
    case Cause::seal:
    case Cause::exhausted:
    case Cause::lease:
      return true;
    default:
      return false;
  }
}

}  // namespace snowflake::pg
