#include "waiting.hpp"

namespace snowflake::lease {

Deadline in_ms(int64_t ms, bool may_stop) {
  return {monotonic_us() + ms * 1000, may_stop};
}

Deadline earlier(const Deadline& one, const Deadline& other) {
  return {std::min(one.at_us, other.at_us), one.may_stop || other.may_stop};
}

const char* wait_for(pgsocket socket, int events, const Deadline& deadline) {
  const int64_t left_us = deadline.at_us - monotonic_us();
  if (left_us <= 0) return "did not answer in time";
  const int happened =
      WaitLatchOrSocket(MyLatch, events | WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, socket,
                        static_cast<long>(left_us / 1000 + 1), PG_WAIT_EXTENSION);
  if (happened & WL_LATCH_SET) ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  return deadline.may_stop && ShutdownRequestPending
             ? "was interrupted, because the lease worker received a request to end"
             : nullptr;
}

}  // namespace snowflake::lease
