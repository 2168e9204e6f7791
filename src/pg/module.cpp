#include "pg/drop_guard.hpp"
#include "pg/lease.hpp"
#include "pg/lock_guard.hpp"
#include "pg/lost_marks.hpp"
#include "pg/postmaster_memory.hpp"
#include "pg/settings.hpp"
#include "pg/shared_state.hpp"
#include "pg/postgres.hpp"

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
  snowflake::pg::install_shared_state();
  snowflake::pg::install_drop_hook();
  snowflake::pg::install_drop_guard();
  snowflake::pg::install_lock_guard();
}

}  // extern "C"
