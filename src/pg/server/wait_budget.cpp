#include "pg/server/wait_budget.hpp"

namespace snowflake::pg {

int64_t WaitBudget::waited_ms() const {
  return since_us == 0 ? 0 : std::max<int64_t>(0, (monotonic_us() - since_us) / 1000 - 1);
}

int64_t sleep_on_latch(int64_t ms, uint32 wait_event) {
  constexpr int64_t kLongestMs = 100;
  const int64_t start_us = monotonic_us();
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                  static_cast<long>(std::min(ms, kLongestMs)), wait_event);
  ResetLatch(MyLatch);
  return monotonic_us() - start_us;
}

}  // namespace snowflake::pg
