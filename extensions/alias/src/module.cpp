#include "key_ring.hpp"
#include "pg/server/postgres.hpp"

extern "C" {

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "snowflake_alias", .version = SNOWFLAKE_VERSION);
#else
PG_MODULE_MAGIC;
#endif

PGDLLEXPORT void _PG_init(void);

// The library need not be preloaded. The library uses no shared memory, and a session can define
// the library's setting at any time.
void _PG_init(void) {
  snowflake::alias::define_settings();
}

}  // extern "C"
