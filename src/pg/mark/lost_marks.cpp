#include "pg/mark/lost_marks.hpp"

#include "core/clock_base.hpp"
#include "pg/memory/database_state.hpp"
#include "pg/memory/postmaster_memory.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/session_events.hpp"
#include "pg/checks/state_sequences.hpp"

namespace snowflake::pg {

namespace {

// Contains the OID and the high-water mark of the sequence snowflake.high_water that the current
// transaction has dropped.
struct DroppedMark {
  Oid relation;
  int64_t mark_ms;
};
constinit DroppedMark dropped{};

constinit object_access_hook_type previous_access_hook = nullptr;

void before_drop(ObjectAccessType access, Oid catalogue, Oid object, int part, void* argument) {
  if (previous_access_hook) previous_access_hook(access, catalogue, object, part, argument);
  if (access != OAT_DROP || catalogue != RelationRelationId || part != 0 ||
      get_rel_relkind(object) != RELKIND_SEQUENCE ||
      get_rel_persistence(object) == RELPERSISTENCE_TEMP)
    return;
  // The function mark_of_any() recognizes the sequence snowflake.high_water by its content, not by
  // its name, because the sequence may have been renamed.
  Relation sequence = relation_open(object, NoLock);  // the DROP command has locked the sequence
  const int64_t mark_ms = SequencePage::mark_of_any(sequence);
  relation_close(sequence, NoLock);
  if (mark_ms == 0) return;
  require_shared_state();
  dropped = {object, std::max(dropped.mark_ms, mark_ms)};
  install_session_events();
}

}  // namespace

void record_lost_mark(int64_t mark_ms) {
  postmaster_memory->lost_marks.raise(MyDatabaseId, mark_ms);
}

int64_t lost_mark_ms() {
  // The shared memory of the database contains the greatest high-water mark, even if set_mark() has
  // lowered the stored mark.
  const DatabaseState* const state = find_database_state();
  const int64_t highest_ms = state == nullptr ? 0 : state->limits.highest_ms();
  return std::max({highest_ms, dropped.mark_ms, postmaster_memory->lost_marks.read(MyDatabaseId)});
}

// A rollback to a savepoint restores a dropped high-water mark with its value.
void keep_dropped_mark() {
  if (OidIsValid(dropped.relation) &&
      !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dropped.relation)))
    record_lost_mark(dropped.mark_ms);
}

void reset_dropped_mark() {
  dropped = DroppedMark{};
}

void install_drop_hook() {
  previous_access_hook = object_access_hook;
  object_access_hook = before_drop;
}

}  // namespace snowflake::pg
