#include "pg/memory/mark_hold.hpp"

namespace snowflake::pg {

constinit MarkHold hold{};

void forget_hold() {
  hold.attached = false;
}

void watch_for_claim() {
  hold.extend_early_at = 0;
}

}  // namespace snowflake::pg
