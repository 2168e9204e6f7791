#include "key_ring.hpp"
#include "pg/server/postgres.hpp"

extern "C" {

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "snowflake_alias", .version = SNOWFLAKE_VERSION);
#else
PG_MODULE_MAGIC;
#endif

PGDLLEXPORT void _PG_init(void);

// The alias library need not be preloaded, because the library uses no shared memory.
void _PG_init(void) {
  snowflake::alias::define_settings();
}

}  // extern "C"
