#include "pg/checks/same_ids.hpp"

#include <cstdlib>

#include "core/seal.hpp"
#include "pg/errors/log_messages.hpp"
#include "pg/server/database_settings.hpp"

namespace snowflake::pg {

namespace {

constexpr int64_t kCheckPauseUs = 5'000'000;

struct Minter {
  const DatabaseState* state;
  Layout layout;
  int32_t region;
  ShardSet shards;

  bool minted(uint32_t origin) const {
    const uint32_t shard = origin & (layout.shards() - 1);
    if (origin != layout.origin(static_cast<uint32_t>(region), shard)) return false;
    const uint64_t last_id = last_id_of(shard);
    return last_id != 0 && layout.origin_of(last_id) == origin && shards.contains(shard);
  }
  uint64_t last_id_of(uint32_t counter) const {
    return shard_counter(state->shard_counters().data(), counter)
        .statistics.last_id.load(std::memory_order_relaxed);
  }
};

// Returns the region and shards in which a database mints. If the database mints no ids, the
// returned region is negative.
Minter minter_of(const DatabaseState& state) {
  const auto origin = chosen_origin(state, SessionStart{});
  if (!origin) return {&state, layout_of(state.seal), kNoRegion, {}};
  const int32_t region = leased() ? lease_view().region : origin->region;
  return {&state, layout_of(state.seal), region, origin->shards};
}

// True if two layouts encode the same time, sequence number, region and shard as the same id.
bool have_one_form(const Layout& a, const Layout& b) {
  return a.time_bits == b.time_bits && a.sequence_bits == b.sequence_bits &&
         a.tick_ms == b.tick_ms && a.epoch_ms == b.epoch_ms;
}

// Returns the first shard whose ids both databases mint, or -1.
int64_t first_common_shard(const Minter& own, const Minter& other) {
  if (own.region < 0 || other.region < 0 || !have_one_form(own.layout, other.layout)) return -1;
  const size_t counters = own.state->shard_counters().size();
  for (uint32_t i = 0; i < counters; ++i) {
    const uint64_t last_id = own.last_id_of(i);
    if (last_id == 0) continue;
    const uint32_t origin = own.layout.origin_of(last_id);
    if (own.minted(origin) && other.minted(origin)) return own.layout.shard_of(last_id);
  }
  return -1;
}

// highest_region() includes configured regions, because a database that has not minted yet may mint
// in its configured region later.
int64_t highest_region() {
  int64_t highest = 0;
  for_each_database([&](const DatabaseState& state) {
    highest = std::max<int64_t>(highest, minter_of(state).region);
  });
  for_each_database_setting("snowflake.region", [&](Oid, const char* value) {
    highest = std::max<int64_t>(highest, std::strtol(value, nullptr, 10));
  });
  return highest;
}

// Returns an ALTER DATABASE statement for two databases that mint the same ids, so that they mint
// different ids afterwards. The ALTER DATABASE statement is always for the database with the
// greater OID, so that the view `health` shows one statement in both databases. If the server does
// not lease its region and a higher region is free, the ALTER DATABASE statement sets that region.
// Otherwise, the ALTER DATABASE statement sets "snowflake.owned_shards".
const char* separating_statement(const Minter& own, const Minter& other) {
  const Minter& changed = own.state->database > other.state->database ? own : other;
  const char* const name = get_database_name(changed.state->database);
  if (name == nullptr) return nullptr;
  const int64_t region = highest_region() + 1;
  if (!leased() && region < int64_t{changed.layout.regions()})
    return psprintf("ALTER DATABASE %s SET snowflake.region = %d", quote_identifier(name),
                    static_cast<int>(region));
  return psprintf("ALTER DATABASE %s SET snowflake.owned_shards = '...'", quote_identifier(name));
}

struct Found {
  Oid database;  // InvalidOid: none
  SameIds same;
};

Found find(const DatabaseState& state) {
  const Minter own = minter_of(state);
  Found found{};
  for_each_database([&](const DatabaseState& other_state) {
    if (OidIsValid(found.database) || other_state.database == state.database) return;
    const Minter other = minter_of(other_state);
    const int64_t shard = first_common_shard(own, other);
    if (shard < 0) return;
    const char* const name = get_database_name(other_state.database);
    const char* const statement = separating_statement(own, other);
    if (name == nullptr || statement == nullptr) return;  // dropped
    found = {other_state.database, {name, static_cast<uint32_t>(shard), statement}};
  });
  return found;
}

}  // namespace

SameIds find_same_ids(const DatabaseState& state) {
  return find(state).same;
}

void check_same_ids(DatabaseState& state) {
  if (!state.same_ids_checked.due(kCheckPauseUs)) return;
  const Found found = find(state);
  if (found.same.found() && found.database < state.database && state.same_ids_logged.due(kDayUs))
    log_same_ids(found.same.database, found.same.shard, found.same.statement);
}

}  // namespace snowflake::pg
