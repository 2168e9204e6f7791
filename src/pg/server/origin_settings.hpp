// The values of "snowflake.region" and "snowflake.owned_shards" when this session started.
//
// "snowflake.region" and "snowflake.owned_shards" are set for the server or for a database, because
// all sessions of a database use the same values. A reload applies to sessions that start later.
// The newest session decides for its database (core/mint_origin.hpp). If a value is invalid, the
// session does not mint. PostgreSQL would show a warning and use another value, which could cause
// duplicates.
#pragma once

#include "core/shard_set.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct OriginSettings {
  int32_t region;  // kNoRegion if the region is leased
  ShardSet shards;
  const char* invalid;  // the name of a setting whose value is invalid, or null
};

OriginSettings origin_settings();

// The region of the configuration as last reloaded. The lease worker reports the configured region.
extern int32_t configured_region;

// The hooks of the two settings.
bool check_region(char** value, void** extra, GucSource source);
void assign_region(const char* value, void* extra);
bool check_owned_shards(char** value, void** extra, GucSource source);
void assign_owned_shards(const char* value, void* extra);

// Called when all settings are defined. Checks the settings together.
void finish_origin_settings();

}  // namespace snowflake::pg
