#include "pg/mark/attach.hpp"

#include "core/clock.hpp"
#include "pg/checks/clone_check.hpp"
#include "pg/checks/facts.hpp"
#include "pg/checks/fleet_check.hpp"
#include "pg/checks/mark_check.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/checks/state_sequences.hpp"
#include "pg/memory/open_mints.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/errors/log_messages.hpp"
#include "pg/mark/held_mark.hpp"
#include "pg/server/sequence_page.hpp"
#include "pg/server/session_events.hpp"
#include "pg/server/settings.hpp"

namespace snowflake::pg {

namespace {

// Opens the sequence of the high-water mark without a look-up if another session has looked up the
// sequence within the last second. Most of the cost of a session's first call is looking up the
// sequences and reading the stored layout (seal).
Relation open_known_mark() {
  install_session_events();
  DatabaseState* const state = find_database_state();
  if (state == nullptr || !all_checked_lately(*state) || !go_by_checked_seal(*state))
    return nullptr;
  const MarkIdentity known = mark_of(*state);
  if (!OidIsValid(known.relation)) return nullptr;
  Relation mark = open_mark(known.relation);
  if (mark == nullptr ||
      (mark->rd_rel->relkind == RELKIND_SEQUENCE && mark->rd_rel->relfilenode == known.storage))
    return mark;
  relation_close(mark, RowExclusiveLock);
  return nullptr;
}

// check_clock_by_mark() is called if the clock seems to have jumped and accept_clock() was not
// called. The stored high-water mark may show that the clock was already wrong at server start.
void check_clock_by_mark() {
  const StateSequences sequences = present_state_sequences();
  Relation mark = sequences.complete() ? open_mark(sequences.high_water) : nullptr;
  if (mark == nullptr) return;
  SequencePage page = SequencePage::open(mark, BUFFER_LOCK_SHARE);
  const int64_t stored_ms = page.mark();
  page.close();
  relation_close(mark, RowExclusiveLock);
  record_mark(stored_ms);
}

struct Attachment {
  bool to_claim;
  // True if another session has made the checks of check_seal(), check_fleet() and
  // check_fingerprint() within the last second.
  bool all_checked;
  Facts facts;
  StateSequences sequences;
  Relation mark;  // the locked sequence snowflake.high_water, or null
  DatabaseState* state;
  int64_t shown_ms;  // the value that SQL reads from the sequence
  MarkBinding binding;
};

// Next::begin_again repeats all steps of attach() if a sequence of the extension was dropped during
// the steps.
enum class Next { proceed, judge, begin_again };

Next check_server(Attachment& a) {
  check_clock();
  if (clock_jumped_ahead() && !clock_is_in_use()) check_clock_by_mark();
  a.facts = facts_of_server();
  a.facts.layout_unknown = true;
  // If a server state such as a clock jump prevents minting, the session reads the id layout that
  // the database stores. If the time range of the id layout has ended, the error must name the
  // layout, even if the clock has also jumped.
  if (blocker(layout, a.facts) != Blocker::none) a.facts.layout_unknown = !try_go_by_seal();
  return Next::judge;
}

// A session locks only one sequence at a time, because DROP EXTENSION locks the sequences in
// another order.
Next find_sequences(Attachment& a) {
  a.mark = open_known_mark();
  a.all_checked = a.mark != nullptr;
  if (!a.all_checked) a.sequences = current_state_sequences();
  return Next::proceed;
}

Next check_seal(Attachment& a) {
  if (!a.all_checked) a.facts.seal = check_seal_for_use(a.sequences, &a.facts.seals);
  if (a.facts.seal == Blocker::seal_gone) return Next::begin_again;
  a.facts.layout_unknown = a.facts.seal != Blocker::none;
  if (a.to_claim) a.facts.position = position_below(layout, a.facts.clock_ms);
  return Next::judge;
}

Next check_fleet(Attachment& a) {
  if (a.all_checked) return Next::proceed;
  return remember_fleet(a.sequences, &a.facts.fleet_remembered) ? Next::judge : Next::begin_again;
}

Next check_fingerprint(Attachment& a) {
  if (a.all_checked) return Next::proceed;
  return remember_fingerprint(a.sequences, &a.facts.moved) ? Next::judge : Next::begin_again;
}

Next check_relation(Attachment& a) {
  if (!a.all_checked) a.mark = open_mark(a.sequences.high_water);
  if (a.mark == nullptr) return Next::begin_again;
  a.facts.mark = blocker_here(a.mark);
  return Next::judge;
}

Next adopt_mark(Attachment& a) {
  a.state = find_or_take_database_state();
  a.facts.no_slot = a.state == nullptr;
  a.facts.clock_ms = wall_clock_ms();  // the session may have waited for locks
  SequencePage page = SequencePage::open(a.mark, BUFFER_LOCK_EXCLUSIVE);
  a.shown_ms = page.value();
  a.facts.mark_known = true;
  a.facts.mark_ms = page.mark();
  a.facts.highest_mark_ms = a.state == nullptr ? 0 : a.state->limits.highest_ms();
  if (blocker(layout, a.facts) == Blocker::none) adopt_stored_mark(*a.state, a.facts.mark_ms);
  page.close();
  record_mark(a.facts.mark_ms);
  return Next::judge;
}

// The region is checked before the shard counters are raised, because shard counters cannot be
// lowered. After a recovery of the lease server, the earliest allowed time of ids in a leased
// region may be far in the future.
Next bind_to_mark(Attachment& a) {
  if (a.facts.highest_mark_ms == 0) log_first_mark(a.facts.mark_ms, a.facts.clock_ms);
  if (!a.all_checked) record_clone(*a.state, a.facts.moved);
  if (hold.state != a.state) leave_mint_slot();
  hold.state = a.state;
  hold.counters = a.state->shard_counters().data();
  hold.mark = {RelationGetRelid(a.mark), a.mark->rd_rel->relfilenode};
  a.binding = bind_mark(*a.state, hold.mark, a.shown_ms);
  if (!a.all_checked) record_all_checked(*a.state, a.facts.seals);
  a.facts.region = a.binding.region.region;
  a.facts.region_begin_ms = a.binding.region.begin_ms;
  return Next::judge;
}

Next take_hold(Attachment& a) {
  hold.generation = a.binding.generation;
  hold.region = static_cast<uint32_t>(a.binding.region.region);
  Limits::reopen(layout, a.binding, [&](uint64_t floor) { raise_floor(*a.state, floor); });
  hold.attached = true;
  take_limit(false);
  record_next_claim();
  return Next::proceed;
}

// The steps of attach() have the same order as the checks in core/blocker.hpp, so that attach()
// reports the first state that prevents minting.
using Step = Next (*)(Attachment&);
constexpr Step kSteps[] = {check_server, find_sequences,    check_seal,
                           check_fleet,  check_fingerprint, check_relation,
                           adopt_mark,   bind_to_mark,      take_hold};

}  // namespace

void attach(WaitBudget& budget, bool to_claim) {
  CHECK_FOR_INTERRUPTS();
  require_shared_state();
  Attachment attachment{};
  attachment.to_claim = to_claim;
  for (const Step step : kSteps) {
    const Next next = step(attachment);
    if (next == Next::begin_again) return;
    if (next == Next::judge && is_in_the_way(attachment.facts, budget, attachment.mark)) return;
  }
  relation_close(attachment.mark, RowExclusiveLock);
}

}  // namespace snowflake::pg
