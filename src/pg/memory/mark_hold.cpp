#include "pg/memory/mark_hold.hpp"

namespace snowflake::pg {

constinit MarkHold hold{};

void reset_hold() {
  hold.attached = false;
}

void record_next_claim() {
  hold.extend_early_at = 0;
}

}  // namespace snowflake::pg
