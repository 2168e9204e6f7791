// The hash support function of the operator class snowflake.by_shard, for PARTITION BY HASH (id
// snowflake.by_shard).
//
// The hash function accepts any number, even if the number is not an id. The planner can call the
// hash function with values of = ANY(...), joins or parameters, which need not be ids. The
// partition of a row depends on the layout of ids, so the hash function checks the stored layout
// (seal). If a restored dump and the database have different layouts of ids, INSERT and SELECT
// raise an error for tables partitioned by snowflake.by_shard.

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

// Checks once per process that PostgreSQL combines hash values as core/by_shard.hpp expects. If
// another PostgreSQL version combined hash values in another way, existing rows would be in the
// wrong hash partitions.
constinit bool combination_checked = false;

void check_combination() {
  FmgrInfo function{};
  function.fn_addr = hash_of_shard;
  function.fn_nargs = 2;
  function.fn_strict = true;
  function.fn_mcxt = CurrentMemoryContext;
  Oid collation = InvalidOid;
  bool null = false;
  for (unsigned bit = 0; bit <= kMaxOriginBits; ++bit) {
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

// PostgreSQL passes the same seed for all hash partitions, so the seed is ignored.
SF_SQL_FUNCTION(hash_by_shard) {
  return hash_by_shard(PG_GETARG_INT64(0));
}

// All integer types must have equal hashes for equal numbers, including negative numbers.
SF_SQL_FUNCTION(hash_integer_by_shard) {
  return hash_by_shard(PG_GETARG_INT32(0));
}

SF_SQL_FUNCTION(hash_smallint_by_shard) {
  return hash_by_shard(PG_GETARG_INT16(0));
}

}  // namespace snowflake::pg
