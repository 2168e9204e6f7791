
#include "worker.hpp"

#include <cstring>
#include <utility>

#include "connection.hpp"
#include "messages.hpp"

namespace snowflake::lease {

namespace {

// The longest pause between requests to the lease server while sessions wait for a lease.
constexpr int64_t kUrgentPauseMs = 1'000;

// Returns true if the PostgreSQL server is shutting down, and false if only the lease worker must
// end. The postmaster writes "stopping" to postmaster.pid before it ends its child processes.
bool server_stops() {
  FILE* const file = fopen("postmaster.pid", "r");
  if (file == nullptr) return true;
  char line[MAXPGPATH] = "";
  int number = 0;
  while (number < LOCK_FILE_LINE_PM_STATUS && fgets(line, sizeof(line), file) != nullptr) ++number;
  fclose(file);
  return number < LOCK_FILE_LINE_PM_STATUS ||
         strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
}

// Registers a new lease worker, which replaces a lease worker that an administrator has terminated.
// The postmaster does not restart the lease worker, because the postmaster's restart interval
// depends on the wall clock, which may be set back. Returns false if no slot for a background
// worker is free.
bool hand_over() {
  BackgroundWorker successor = describe_worker();
  if (RegisterDynamicBackgroundWorker(&successor, nullptr)) {
    ereport(LOG, (errmsg("snowflake: the lease worker received a request to end, and a new lease "
                         "worker continues")));
    return true;
  }
  ereport(LOG, (errmsg("snowflake: the lease worker received a request to end, but continues"),
                errdetail("No new lease worker can start, because all workers of "
                          "\"max_worker_processes\" are in use.")));
  return false;
}

bool ends() {
  if (server_stops()) {
    static constinit bool tried = false;
    const bool again = std::exchange(tried, true);
    if (!again) give_back();
    return true;
  }
  ShutdownRequestPending = false;
  return hand_over();
}

void wait_until_due(int64_t now_us) {
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                  static_cast<long>((schedule.due_us - now_us) / 1000 + 1), PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
}

bool one_turn() {
  CHECK_FOR_INTERRUPTS();
  if (ShutdownRequestPending) return ends();
  if (ConfigReloadPending) {
    ConfigReloadPending = false;
    ProcessConfigFile(PGC_SIGHUP);
  }
  const int64_t now_us = monotonic_us();
  // While sessions wait for a lease, the pause before the next request is shorter.
  if (port->is_urgent())
    schedule.due_us = std::min(
        schedule.due_us, schedule.asked_us + std::min(schedule.pause_ms, kUrgentPauseMs) * 1000);
  if (now_us >= schedule.due_us)
    exchange();
  else
    wait_until_due(now_us);
  return false;
}

void recover() {
  // HOLD_INTERRUPTS() and RESUME_INTERRUPTS() would increment a volatile variable, which C++20
  // deprecates.
  InterruptHoldoffCount = InterruptHoldoffCount + 1;
  EmitErrorReport();
  AbortCurrentTransaction();
  LWLockReleaseAll();
  pgstat_report_wait_end();
  hang_up();
  stop_resolving();
  FlushErrorState();
  InterruptHoldoffCount = InterruptHoldoffCount - 1;
  schedule.asked_us = monotonic_us();
  set_message("the lease worker raised an error, which is in the server's log");
  retry_later();
}

// Waits until the previous lease worker has ended. Only one worker may write the lease state.
void take_over() {
  while (!port->serve()) {
    CHECK_FOR_INTERRUPTS();
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 20,
                    PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    if (ShutdownRequestPending && server_stops()) proc_exit(0);
  }
}

void work() {
  const MemoryContext context =
      AllocSetContextCreate(TopMemoryContext, "snowflake lease", ALLOCSET_DEFAULT_SIZES);
  take_over();
  begin_exchanges();
  for (bool ended = false; !ended;) {
    MemoryContextSwitchTo(context);
    MemoryContextReset(context);
    PG_TRY();
    { ended = one_turn(); }
    PG_CATCH();
    {
      MemoryContextSwitchTo(context);
      recover();
    }
    PG_END_TRY();
  }
}

}  // namespace

}  // namespace snowflake::lease

extern "C" {

PGDLLEXPORT void snowflake_lease_main(Datum);

void snowflake_lease_main(Datum) {
  using namespace snowflake::lease;
  pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  BackgroundWorkerUnblockSignals();
  // Makes the lease worker visible in pg_stat_activity, so that an administrator can end the lease
  // worker. The column "state" of pg_stat_activity stays null for the lease worker, because scripts
  // often end sessions whose state is idle.
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  find_port();
  work();
  // The postmaster does not restart a worker that exits with 0. When the lease worker exits, either
  // the server stops or a new lease worker is registered.
  proc_exit(0);
}

}  // extern "C"
