// The process of the worker: its loop, its end, its successor.

#include "worker.hpp"

#include <cstring>

#include "connection.hpp"
#include "messages.hpp"

namespace snowflake::lease {

namespace {

constexpr int64_t kUrgentPauseMs = 1'000;  // while sessions wait

// Whether the whole server stops: the postmaster writes so before it ends anybody.
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

// Ended by an operator, who means this process and not the region: another goes on with it. It is
// registered here, for what exits with an error is started again when the wall clock says so, and
// that may have been set back. False where there is no room for two.
bool hand_over() {
  BackgroundWorker successor = describe_worker();
  if (RegisterDynamicBackgroundWorker(&successor, nullptr)) {
    ereport(LOG, (errmsg("snowflake: the lease worker was asked to end, another goes on")));
    return true;
  }
  ereport(LOG, (errmsg("snowflake: the lease worker was asked to end, and goes on"),
                errdetail("There is no room for another in \"max_worker_processes\".")));
  return false;
}

// Whether the worker is to end.
bool ends() {
  if (server_stops()) {
    give_back();
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

// True where the worker is to end.
bool one_turn() {
  CHECK_FOR_INTERRUPTS();
  if (ShutdownRequestPending) return ends();
  if (ConfigReloadPending) {
    ConfigReloadPending = false;
    ProcessConfigFile(PGC_SIGHUP);
  }
  const int64_t now_us = monotonic_us();
  // Sessions that wait for time ask for it now, but not in a hurry that would harm.
  if (port->is_urgent())
    schedule.due_us = std::min(
        schedule.due_us, schedule.asked_us + std::min(schedule.pause_ms, kUrgentPauseMs) * 1000);
  if (now_us >= schedule.due_us)
    exchange();
  else
    wait_until_due(now_us);
  return false;
}

// An error, or a cancel, ends what was being done and not the worker.
void recover() {
  // The macros count a volatile up and down, which C++20 deprecates.
  InterruptHoldoffCount = InterruptHoldoffCount + 1;
  EmitErrorReport();
  LWLockReleaseAll();
  pgstat_report_wait_end();
  hang_up();
  stop_resolving();
  FlushErrorState();
  InterruptHoldoffCount = InterruptHoldoffCount - 1;
  schedule.asked_us = monotonic_us();
  set_message("the lease worker met an error, see the server's log");
  retry_later();
}

// An operator ended the one before, and it is about to go. Two at once would both write the memory.
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
  // To no database: so that pg_stat_activity shows it and an operator can end it. Of no state
  // there: idle sessions are ended by many a nightly job.
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  find_port();
  work();
  // 0: the postmaster starts none. Either it stops, or the successor is registered.
  proc_exit(0);
}

}  // extern "C"
