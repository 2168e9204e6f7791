#include "pg/high_water.hpp"

#include "core/clock.hpp"
#include "pg/clock_watch.hpp"
#include "pg/errors.hpp"
#include "pg/seal_check.hpp"
#include "pg/sequence_page.hpp"
#include "pg/session.hpp"
#include "pg/settings.hpp"

namespace snowflake::pg {

namespace {

int64_t reserve_span_ms() {
  return static_cast<int64_t>(reserve_ticks * layout.tick_ms);
}

// A mark can be any number, for a superuser can write it: past the layout's end it is the end.
uint64_t first_position(uint64_t tick) {
  return layout.first_position(std::min(tick, layout.last_minted_tick() + 1));
}

// The first position that a mark does not cover.
uint64_t limit_of(int64_t mark_ms) {
  return mark_ms <= layout.epoch_ms ? 0 : first_position(layout.tick_at(mark_ms));
}

// The first position that is surely unused under a mark that may lie within a tick.
uint64_t floor_of(int64_t mark_ms) {
  return mark_ms <= layout.epoch_ms ? 0 : first_position(layout.tick_from(mark_ms));
}

void raise(std::atomic<int64_t>& word, int64_t value) {
  int64_t seen = word.load(std::memory_order_relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// A mark that we neither wrote nor read before: from an earlier server life, or raised from
// outside. Called with the page's content lock, so that nobody sees `known_ms` cover a mark before
// the words are lifted to it.
void hear(Slot* slot, int64_t stored) {
  if (stored <= slot->known_ms.load(std::memory_order_relaxed)) return;
  lift_words(floor_of(stored));
  raise(slot->floor_ms, stored);
  raise(slot->known_ms, stored);
}

// Looked up anew: ALTER EXTENSION ... DROP SEQUENCE tells nobody. By value: taking a lock may run
// the callback that clears the session's.
Members members_now() {
  session.members = Members{};
  return session_members();
}

void check_mark(Relation mark) {
  if (mark->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT) error_not_permanent();
  if (mark->rd_createSubid == InvalidSubTransactionId && storage_is_uncommitted(mark))
    error_mark_uncommitted();
  // After a rollback the old mark would be in force again, and not know of ids that this one
  // covers.
  if (mark->rd_createSubid != InvalidSubTransactionId && dropped_in_this_transaction())
    error_extension_recreated();
}

Relation open_mark(Oid oid, LOCKMODE mode) {
  LockRelationOid(oid, mode);
  Relation mark = try_relation_open(oid, NoLock);
  if (mark == nullptr) {
    // Dropped under us: look the members up again.
    UnlockRelationOid(oid, mode);
    session.members = Members{};
    session.attached = false;
  }
  return mark;
}

// The mark as the database's other sessions hold it, or null. Finding the members and reading the
// seal is most of what a session's first call costs; where somebody did both within a second, only
// the mark itself is looked at, and with all that attach() asks of it. That it is still the member
// is checked before it is written.
Relation open_known_mark() {
  watch_session();
  Slot* const slot = find_slot();
  if (slot == nullptr || !seal_checked_lately(*slot)) return nullptr;
  const MarkIdentity known = mark_of(*slot);
  if (!OidIsValid(known.relation)) return nullptr;
  Relation mark = open_mark(known.relation, RowExclusiveLock);
  if (mark == nullptr ||
      (mark->rd_rel->relkind == RELKIND_SEQUENCE && mark->rd_rel->relfilenode == known.storage))
    return mark;
  relation_close(mark, RowExclusiveLock);
  return nullptr;
}

// Half of the reserve in positions: the share that is written ahead.
uint64_t half_reserve() {
  return layout.first_position(reserve_ticks / 2);
}

void take_limit(bool more_is_written) {
  session.limit = session.slot->limit.read();
  session.attention = more_is_written || session.limit < half_reserve()
                          ? session.limit
                          : session.limit - half_reserve();
}

// What the mark said, and what it says now.
struct Raised {
  int64_t before;
  XLogRecPtr before_lsn;
  int64_t after;
  XLogRecPtr after_lsn;
};

// Raises the mark to `wanted` where it is less than `least` beyond `needed`.
Raised raise_page(Relation mark, Slot* slot, int64_t needed, int64_t least, int64_t wanted) {
  SequencePage page = SequencePage::open(mark, BUFFER_LOCK_EXCLUSIVE);
  Raised raised{};
  raised.before = page.value();
  raised.before_lsn = page.lsn();
  hear(slot, raised.before);
  // known_ms is at least every published limit: where the stored value is below, it was lowered.
  raised.after = std::max(raised.before, slot->known_ms.load(std::memory_order_relaxed));
  if (raised.after - needed < least) raised.after = std::max(raised.after, wanted);
  raised.after_lsn = raised.before_lsn;
  if (raised.after > raised.before) {
    raised.after_lsn = page.write(mark, raised.after);
    raise(slot->known_ms, raised.after);
  }
  page.close();
  return raised;
}

// A reserve beyond the position, unless half of one is there.
Raised extend_page(Relation mark, uint64_t position) {
  const int64_t needed = layout.ms_of_tick(layout.tick_of_position(position));
  const int64_t reserve = reserve_span_ms();
  return raise_page(mark, session.slot, needed, reserve / 2, needed + reserve);
}

// Whether the session's hold on the mark, which is locked, is still good. That settles what
// invalidation messages have made it doubt meanwhile.
bool still_ours(Relation mark) {
  session.attached =
      session.slot->generation.load(std::memory_order_relaxed) == session.generation &&
      mark->rd_rel->relfilenode == session.mark_storage;
  return session.attached;
}

void publish(int64_t mark_ms) {
  LWLockAcquire(state->lock, LW_EXCLUSIVE);
  if (session.holds_limit()) {
    session.slot->limit.publish(limit_of(mark_ms));
  } else {
    session.attached = false;
  }
  LWLockRelease(state->lock);
}

// Makes `position` mintable, and writes ahead what will be wanted next.
void raise_and_publish(Relation mark, uint64_t position) {
  const Raised raised = extend_page(mark, position);
  // What was written early is flushed by now as a rule, and then nothing here touches the disk.
  const bool early = limit_of(raised.before) > position;
  XLogFlush(early ? raised.before_lsn : raised.after_lsn);
  if (raised.after_lsn != raised.before_lsn && early) XLogSetAsyncXactLSN(raised.after_lsn);
  publish(early ? raised.before : raised.after);
  if (session.attached) take_limit(early && raised.after > raised.before);
}

void withdraw_limit(Slot* slot) {
  LWLockAcquire(state->lock, LW_EXCLUSIVE);
  slot->seal_checked.store(0, std::memory_order_relaxed);
  slot->mark = slot->mark_storage = InvalidOid;
  slot->limit.withdraw();
  slot->generation.fetch_add(1, std::memory_order_release);
  LWLockRelease(state->lock);
  session.attached = false;
}

bool is_mark(Oid relation) {
  if (get_rel_relkind(relation) != RELKIND_SEQUENCE) return false;
  const char* name = get_rel_name(relation);
  if (name == nullptr || strcmp(name, "high_water") != 0) return false;
  const Oid extension = getExtensionOfObject(RelationRelationId, relation);
  return OidIsValid(extension) && extension == get_extension_oid("snowflake", true);
}

constinit object_access_hook_type previous_access_hook = nullptr;

// A DROP never fails for this: where all slots are taken, nothing can mint here either.
void before_drop(ObjectAccessType access, Oid catalogue, Oid object, int part, void* argument) {
  if (previous_access_hook) previous_access_hook(access, catalogue, object, part, argument);
  if (access != OAT_DROP || catalogue != RelationRelationId || part != 0 || state == nullptr ||
      !is_mark(object))
    return;
  Slot* const slot = find_or_try_slot();
  if (slot == nullptr) return;
  Relation mark = relation_open(object, NoLock);  // the DROP holds it locked
  SequencePage page = SequencePage::open(mark, BUFFER_LOCK_EXCLUSIVE);
  hear(slot, page.value());
  page.close();
  relation_close(mark, NoLock);
}

}  // namespace

void install_drop_hook() {
  previous_access_hook = object_access_hook;
  object_access_hook = before_drop;
}

void attach() {
  CHECK_FOR_INTERRUPTS();
  if (state == nullptr) error_not_preloaded();

  Relation mark = open_known_mark();
  const bool known_already = mark != nullptr;
  // One lock at a time: DROP EXTENSION takes those of all members, in an order of its own.
  while (mark == nullptr) {
    const Members members = members_now();
    if (check_seal(members)) mark = open_mark(members.high_water, RowExclusiveLock);
  }
  check_mark(mark);

  Slot* const slot = find_or_take_slot();
  SequencePage page = SequencePage::open(mark, BUFFER_LOCK_EXCLUSIVE);
  const int64_t stored = page.value();
  const int64_t known = slot->known_ms.load(std::memory_order_relaxed);
  if (stored < layout.epoch_ms && known == 0) {
    page.close();
    error_mark_unset(stored);
  }
  hear(slot, stored);
  page.close();

  const Oid oid = RelationGetRelid(mark);
  const Oid storage = mark->rd_rel->relfilenode;
  LWLockAcquire(state->lock, LW_EXCLUSIVE);
  if (slot->mark != oid || slot->mark_storage != storage || stored < known) {
    slot->mark = oid;
    slot->mark_storage = storage;
    slot->limit.withdraw();
    slot->generation.fetch_add(1, std::memory_order_release);
  }
  session.slot = slot;
  session.mark = oid;
  session.mark_storage = storage;
  session.generation = slot->generation.load(std::memory_order_relaxed);
  LWLockRelease(state->lock);

  if (!known_already) note_seal_checked(*slot);
  take_limit(false);
  session.attached = true;
  relation_close(mark, RowExclusiveLock);
}

void extend_limit(uint64_t position) {
  CHECK_FOR_INTERRUPTS();
  // Somebody else may have done it.
  if (session.holds_limit() && session.slot->limit.read() > position) {
    take_limit(false);
    return;
  }
  look_at_clock();
  if (clock_jumped_ahead()) error_clock_jumped(clock_drift_us() / 1000);

  Relation mark = open_mark(session.mark, RowExclusiveLock);
  if (mark == nullptr) return;
  check_mark(mark);
  if (still_ours(mark)) {
    const Members members = members_now();
    if (members.high_water != session.mark || !seal_still_holds(members)) {
      withdraw_limit(session.slot);
    } else if (still_ours(mark)) {
      raise_and_publish(mark, position);
    }
  }
  // Kept until the limit is published: a DROP EXTENSION that gets the lock has seen the last of
  // them.
  relation_close(mark, RowExclusiveLock);
}

void extend_early(uint64_t position) {
  session.attention = session.limit;  // one attempt; whoever reaches the limit does without it
  look_at_clock();
  const Oid oid = session.mark;
  if (clock_jumped_ahead() || !ConditionalLockRelationOid(oid, RowExclusiveLock)) return;
  Relation mark = try_relation_open(oid, NoLock);
  if (mark != nullptr) {
    const Members members = session.members;  // locking may run the callback that clears it
    if (still_ours(mark) && (!members.complete() || seal_still_holds(members))) {
      const Raised raised = extend_page(mark, position);
      if (raised.after > raised.before) XLogSetAsyncXactLSN(raised.after_lsn);
    }
    relation_close(mark, NoLock);
  }
  UnlockRelationOid(oid, RowExclusiveLock);
}

void raise_mark(int64_t ms) {
  for (;;) {
    if (!session.holds_limit()) attach();
    Relation mark = open_mark(session.mark, RowExclusiveLock);
    if (mark == nullptr) continue;
    check_mark(mark);
    bool done = false;
    if (still_ours(mark)) {
      done = members_now().high_water == session.mark;
      if (done) {
        XLogFlush(raise_page(mark, session.slot, ms, 0, ms).after_lsn);
      } else {
        withdraw_limit(session.slot);
      }
    }
    relation_close(mark, RowExclusiveLock);
    if (done) return;
  }
}

}  // namespace snowflake::pg
