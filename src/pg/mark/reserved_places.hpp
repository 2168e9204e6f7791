// The places, region and shard, whose ids backfill() gave to rows: nobody mints in them.
//
// backfill() takes none that this server mints in, and what it has taken outlives that: a restart
// with another region or other shards, a region that is leased later, a dump that brings its places
// along. So each session reads them when it takes hold of the mark, and its calls go by
// mintable_shards, which is snowflake.owned_shards without them.
#pragma once

#include "pg/checks/state_sequences.hpp"
#include "pg/memory/database_state.hpp"

namespace snowflake::pg {

// Reads the table. A session that does not, because nobody has to, forgets what it read before.
void read_reserved_places(const StateSequences& sequences);
void forget_reserved_places();

// For which table the database keeps a place, read now and without waiting.
struct ReservedPlace {
  bool known;             // false where the table of places is locked
  const char* relation;   // as backfill() wrote it down; null where the place is not kept
  int64_t last_position;  // of the latest id that was given, -1 before the first
};
ReservedPlace find_reserved_place(uint32_t region, uint32_t shard);

// Whether sessions of the database have to read the table; what they have read is noted.
bool may_have_reserved_places(const DatabaseState& state);
void note_reserved_places(DatabaseState& state);

// Leaves those of a region out of mintable_shards.
void leave_out_reserved(uint32_t region);

// The table, as this session knows it.
bool is_table_of_places(Oid relation);

}  // namespace snowflake::pg
