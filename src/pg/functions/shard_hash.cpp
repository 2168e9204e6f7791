// PARTITION BY HASH (id snowflake.by_shard): support function 2 of the operator class.
//
// It takes any number and raises for none: plans meet foreign and negative ones, in = ANY(...), in
// joins, in parameters. But where a row goes depends on the layout, so it asks for the seal as
// every function does: under settings that contradict the seal no row is placed, and none looked
// for in the wrong place.

#include "core/by_shard.hpp"
#include "pg/errors/errors_routing.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

Datum hash_of_shard(PG_FUNCTION_ARGS) {
  return UInt64GetDatum(partition_hash(static_cast<uint32_t>(PG_GETARG_INT64(0))));
}

// Asks the server itself what it makes of our number: a version that combined hashes differently
// would spread rows that the versions before it had placed by shard. Once a process.
constinit bool combination_checked = false;

void check_combination() {
  FmgrInfo function{};
  function.fn_addr = hash_of_shard;
  function.fn_nargs = 2;
  function.fn_strict = true;
  function.fn_mcxt = CurrentMemoryContext;
  Oid collation = InvalidOid;
  bool null = false;
  for (unsigned bit = 0; bit <= kMaxPlaceBits; ++bit) {
    const uint64_t shard = (uint64_t{1} << bit) - 1;
    Datum value = UInt64GetDatum(shard);
    const uint64_t placed = compute_partition_hash_value(1, &function, &collation, &value, &null);
    if (placed != shard) error_hashes_combined_otherwise(shard, placed);
  }
  combination_checked = true;
}

inline Datum hash_by_shard(int64_t id) {
  require_seal();
  if (!combination_checked) [[unlikely]]
    check_combination();
  return UInt64GetDatum(partition_hash(layout.shard_of(static_cast<uint64_t>(id))));
}

}  // namespace

// The seed, the second argument, is the same for all hash partitions; here it has no say.
SF_SQL_FUNCTION(hash_by_shard) {
  return hash_by_shard(PG_GETARG_INT64(0));
}

// Constants of the smaller types, sign and all: 5::int has to be looked for where 5::bigint is.
SF_SQL_FUNCTION(hash_integer_by_shard) {
  return hash_by_shard(PG_GETARG_INT32(0));
}

SF_SQL_FUNCTION(hash_smallint_by_shard) {
  return hash_by_shard(PG_GETARG_INT16(0));
}

}  // namespace snowflake::pg
