#include "core/clock_base.hpp"
#include "core/origin_fingerprint.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/clock/commit_wait.hpp"
#include "pg/functions/create_extension.hpp"
#include "pg/define_settings.hpp"
#include "pg/guards/drop_guard.hpp"
#include "pg/mark/high_water.hpp"
#include "pg/memory/lease_worker.hpp"
#include "pg/guards/lock_guard.hpp"
#include "pg/mark/lost_marks.hpp"
#include "pg/memory/open_mints.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/cursor/prepared_mints.hpp"
#include "pg/memory/pending_counters.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/errors/refusal.hpp"
#include "pg/server/session_events.hpp"
#include "pg/functions/set_id_guard.hpp"
#include "pg/server/whereabouts.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/memory/statistics.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {
namespace {

// The callbacks of a session run in the order of their registration. The function
// wait_before_commit() is registered first, so that keep_dropped_mark() and report_seal() do not
// run if wait_before_commit() raises an error.
void register_all_session_events() {
  register_session_events({wait_before_commit, end_pending_counters, nullptr});
  register_session_events({keep_dropped_mark, reset_dropped_mark, nullptr});
  register_session_events({report_seal, reset_new_seal, nullptr});
  register_session_events({nullptr, reset_seal, invalidate_relations});
  register_session_events({nullptr, reset_mark_write, nullptr});
  register_session_events({nullptr, end_open_mints, nullptr, hold_prepared_mint});
}

}  // namespace
}  // namespace snowflake::pg

extern "C" {

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "snowflake", .version = SNOWFLAKE_VERSION);
#else
PG_MODULE_MAGIC;
#endif

PGDLLEXPORT void _PG_init(void);

// If the library is preloaded, child processes inherit the library from the postmaster. Without
// preload, each session loads the library with its first call of a function.
void _PG_init(void) {
  snowflake::pg::define_settings();
  if (process_shared_preload_libraries_in_progress) {
    snowflake::pg::find_whereabouts();
    snowflake::pg::map_postmaster_memory();
    snowflake::pg::install_lease();
  }
  snowflake::pg::install_shared_state(snowflake::pg::start_clock_watch);
  snowflake::pg::register_all_session_events();
  snowflake::pg::install_set_id_guard();
  snowflake::pg::install_refusal_counter(snowflake::pg::count_refusal);
  snowflake::pg::install_drop_hook();
  snowflake::pg::install_drop_guard();
  snowflake::pg::install_lock_guard();
}

}  // extern "C"
