// The values of "snowflake.region" and "snowflake.owned_shards" when this session started.
//
// All sessions of a database must use the same region and shards. A reload of the configuration
// therefore applies only to later sessions. The newest session decides for its database
// (core/mint_origin.hpp).
//
// If the region or the shards are invalid, the session does not mint. PostgreSQL would warn and use
// another value, which could cause duplicate ids.
#pragma once

#include "core/shard_set.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

struct OriginSettings {
  int32_t region;  // kNoRegion if the region is leased
  ShardSet shards;
  const char* invalid;  // the name of an invalid setting, or null
};

OriginSettings origin_settings();

// The region in the configuration after the last reload, which the lease worker reports.
extern int32_t configured_region;

bool check_region(char** value, void** extra, GucSource source);
void assign_region(const char* value, void* extra);
bool check_owned_shards(char** value, void** extra, GucSource source);
void assign_owned_shards(const char* value, void* extra);

// REQUIRES that all settings are defined. Later values are checked against each other.
void finish_origin_settings();

}  // namespace snowflake::pg
