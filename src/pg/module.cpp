#include "pg/clock_watch.hpp"
#include "pg/commit_wait.hpp"
#include "pg/create_extension.hpp"
#include "pg/define_settings.hpp"
#include "pg/drop_guard.hpp"
#include "pg/high_water.hpp"
#include "pg/lease.hpp"
#include "pg/lock_guard.hpp"
#include "pg/lost_marks.hpp"
#include "pg/postmaster_memory.hpp"
#include "pg/pending_counters.hpp"
#include "pg/seal_check.hpp"
#include "pg/session_events.hpp"
#include "pg/shared_state.hpp"
#include "pg/statistics.hpp"
#include "pg/postgres.hpp"

namespace snowflake::pg {
namespace {

// Who hears of the end of a transaction and of changes, in this order: a commit that cannot wait
// fails before anything is kept of it.
void register_all_session_events() {
  register_session_events({wait_before_commit, end_pending_counters, nullptr});
  register_session_events({keep_dropped_mark, forget_dropped_mark, nullptr});
  register_session_events({announce_seal, forget_new_seal, nullptr});
  register_session_events({nullptr, forget_seal, doubt_relations});
  register_session_events({nullptr, forget_mark_write, nullptr});
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

// Not preloaded, it defines nothing: a setting that belongs to server start would end the session
// that loads the library. The functions say what is missing.
void _PG_init(void) {
  if (!process_shared_preload_libraries_in_progress) return;
  snowflake::pg::define_settings();
  snowflake::pg::map_postmaster_memory();
  snowflake::pg::install_lease();
  snowflake::pg::install_shared_state(snowflake::pg::start_clock_watch);
  snowflake::pg::register_all_session_events();
  snowflake::pg::install_drop_hook();
  snowflake::pg::install_drop_guard();
  snowflake::pg::install_lock_guard();
}

}  // extern "C"
