// The values of "snowflake.region" and "snowflake.owned_shards" when this session started.
//
// All sessions of a database must use the same region and shards. A reload of the configuration
// changes the region and shards only for sessions that start after the reload. The newest session
// chooses the region and shards of its database (core/mint_origin.hpp).
//
// If "snowflake.region" or "snowflake.owned_shards" has an invalid value, the session does not
// mint. For an invalid value, PostgreSQL would only warn and use another value, which could cause
// duplicate ids.
#pragma once

#include "core/shard_set.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct OriginSettings {
  int32_t region;  // kNoRegion: leased
  ShardSet shards;
  const char* invalid;  // name of an invalid setting
};

OriginSettings origin_settings();

// The value of "snowflake.region" after the last reload of the configuration. The lease worker
// reports the value of "snowflake.region" to the lease server.
extern int32_t configured_region;

bool check_region(char** value, void** extra, GucSource source);
void assign_region(const char* value, void* extra);
bool check_owned_shards(char** value, void** extra, GucSource source);
void assign_owned_shards(const char* value, void* extra);

// REQUIRES that all settings of the extension are defined. After finish_origin_settings(), new
// values of "snowflake.region" are compared with "snowflake.leased_regions".
void finish_origin_settings();

}  // namespace snowflake::pg
