#include "pg/functions/column_ids.hpp"
#include "pg/server/row.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

namespace {

enum class Kind : int32_t { none, negative, beyond, early, ahead, id };
constexpr const char* kKindNames[] = {"none", "negative", "beyond", "early", "ahead", "id"};

struct Key {
  Kind kind;
  int32_t region;
  int32_t shard;
};

struct Group {
  Key key;
  int64 ids;
  int64 least;
  int64 greatest;
};

struct Audit {
  HTAB* groups;
  int64 early;  // the greatest possible id of the first hour after the epoch
  int64 mark;   // the greatest possible id below the high-water mark
};

Kind kind_of(const Audit& audit, int64 id) {
  if (id < 0) return Kind::negative;
  if (!layout.contains(static_cast<uint64_t>(id))) return Kind::beyond;
  if (id <= audit.early) return Kind::early;
  return id > audit.mark ? Kind::ahead : Kind::id;
}

Key key_of(const Audit& audit, int64 value, bool null) {
  const Kind kind = null ? Kind::none : kind_of(audit, value);
  if (kind != Kind::id && kind != Kind::ahead) return {kind, 0, 0};
  const auto id = static_cast<uint64_t>(value);
  return {kind, static_cast<int32_t>(layout.region_of(id)),
          static_cast<int32_t>(layout.shard_of(id))};
}

void count(void* state, int64 value, bool null) {
  const Audit& audit = *static_cast<const Audit*>(state);
  const Key key = key_of(audit, value, null);
  bool found = false;
  Group& group = *static_cast<Group*>(hash_search(audit.groups, &key, HASH_ENTER, &found));
  if (!found) group = {key, 0, value, value};
  ++group.ids;
  group.least = std::min(group.least, value);
  group.greatest = std::max(group.greatest, value);
}

HTAB* new_groups() {
  HASHCTL control{};
  control.keysize = sizeof(Key);
  control.entrysize = sizeof(Group);
  control.hcxt = CurrentMemoryContext;
  return hash_create("ids of a column", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void put_group(FunctionCallInfo fcinfo, const Group& group) {
  const Kind kind = group.key.kind;
  const bool no_origin = kind != Kind::id && kind != Kind::ahead;
  put_row(fcinfo, {
                      {"kind", kKindNames[static_cast<int>(kind)]},
                      {"region", Int32GetDatum(group.key.region), no_origin},
                      {"shard", Int32GetDatum(group.key.shard), no_origin},
                      {"ids", Int64GetDatum(group.ids)},
                      {"lowest", Int64GetDatum(group.least), kind == Kind::none},
                      {"highest", Int64GetDatum(group.greatest), kind == Kind::none},
                  });
}

struct Ends {
  int64 least;
  int64 greatest;
  bool any;
};

void extend(void* state, int64 value, bool null) {
  if (null) return;
  Ends& ends = *static_cast<Ends*>(state);
  ends = {ends.any ? std::min(ends.least, value) : value,
          ends.any ? std::max(ends.greatest, value) : value, true};
}

}  // namespace

SF_SQL_FUNCTION(audited) {
  InitMaterializedSRF(fcinfo, 0);
  Audit audit{new_groups(), PG_GETARG_INT64(3), PG_GETARG_INT64(4)};
  visit_column(PG_GETARG_OID(0), NameStr(*PG_GETARG_NAME(1)), PG_GETARG_FLOAT8(2), count, &audit);
  HASH_SEQ_STATUS all;
  hash_seq_init(&all, audit.groups);
  while (const void* const group = hash_seq_search(&all))
    put_group(fcinfo, *static_cast<const Group*>(group));
  return Datum{0};
}

SF_SQL_FUNCTION(ends_of) {
  Ends ends{};
  visit_ends_of_column(PG_GETARG_OID(0), NameStr(*PG_GETARG_NAME(1)), extend, &ends);
  return row_of(fcinfo, {
                            {"lowest", Int64GetDatum(ends.least), !ends.any},
                            {"highest", Int64GetDatum(ends.greatest), !ends.any},
                        });
}

}  // namespace snowflake::pg
