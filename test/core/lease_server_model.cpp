// The server side of the model: sessions, worker, and the order of their steps.
#include "lease_world.hpp"

namespace snowflake {

void World::raise_words(Slot& slot, int64_t ms) {
  const uint64_t floor = position_from(layout_, ms);
  for (uint64_t& word : slot.words)
    if (floor != 0 && word < floor - 1) word = floor - 1;
}

void World::start(Server& s, bool keep_memory) {
  s.up = true;
  s.born = now_;
  if (!keep_memory) {
    s.memory = ModelMemory{};
    s.memory.begin(draw(), LeaseAnswer{});
  }
  crash(s);
}

// Shared memory is laid out afresh; the postmaster's own, and the disk, stay.
void World::crash(Server& s) {
  s.slots = {};
  for (size_t i = 0; i < s.sessions.size(); ++i) {
    s.sessions[i] = Session{};
    s.sessions[i].database = static_cast<int>(i) % kDatabases;
  }
  s.worker = Worker{};
  s.worker.nonce = {draw(), 0};
}

void World::withdraw(Server& s) {
  for (Slot& slot : s.slots) {
    slot.limit = 0;
    ++slot.generation;
  }
}

void World::attach(Server& s, Session& session) {
  session.attached = false;
  session.read_limit.reset();
  session.written_mark.reset();
  Slot& slot = s.slots[static_cast<size_t>(session.database)];
  if (rules_.reopen_at_mark) raise_words(slot, s.disk.mark[static_cast<size_t>(session.database)]);
  const LeaseView lease = s.memory.view();
  if (lease.region == kNoRegion) return;
  session.generation = slot.generation;
  session.region = lease.region;
  session.incarnation = lease.incarnation;
  session.limit = 0;
  if (rules_.reopen_at_highest) raise_words(slot, lease.highest_ms);
  session.attached = true;
}

void World::read_limit(Server& s, Session& session) {
  session.read_limit = s.slots[static_cast<size_t>(session.database)].limit;
  if (!rules_.reader_checks) session.limit = *session.read_limit;
}

void World::check_limit(Server& s, Session& session) {
  if (!session.read_limit) return;
  if (s.slots[static_cast<size_t>(session.database)].generation == session.generation)
    session.limit = *session.read_limit;
  else if (rules_.reader_checks)
    session.attached = false;
  session.read_limit.reset();
}

uint64_t World::next_position(const Server& s, const Session& session, int shard) const {
  const uint64_t now =
      layout_.first_position(layout_.tick_at(std::max(clock(s), layout_.epoch_ms)));
  const auto& words = s.slots[static_cast<size_t>(session.database)].words;
  return std::max(words[static_cast<size_t>(shard)] + 1, now);
}

// Writes and flushes the mark. Published later, or never.
void World::write_mark(Server& s, Session& session) {
  const int shard = static_cast<int>(random_.below(kShards));
  const uint64_t position = next_position(s, session, shard);
  if (layout_.tick_of_position(position) * 1000 + static_cast<uint64_t>(layout_.epoch_ms) >
      static_cast<uint64_t>(clock(s) + lead_ms_))
    return;  // ahead of the clock: refused before the mark is extended
  int64_t& mark = s.disk.mark[static_cast<size_t>(session.database)];
  int64_t until = s.memory.view().until_ms;
  if (!rules_.mark_below_until || !rules_.lease_checked) until = INT64_MAX / 4;
  mark = std::max(mark, mark_within_lease(layout_, position, reserve_ms_, until));
  session.written_mark = mark;
}

void World::publish(Server& s, Session& session, bool interrupted) {
  if (!session.written_mark) return;
  const int64_t mark = *session.written_mark;
  session.written_mark.reset();
  Slot& slot = s.slots[static_cast<size_t>(session.database)];
  if (slot.generation != session.generation) {
    session.attached = false;
    return;
  }
  const int64_t limit = rules_.lease_checked ? covered_until(mark, s.memory.view().until_ms) : mark;
  if (rules_.highest_before_limit) s.memory.raise_highest(limit);
  if (rules_.highest_before_limit && interrupted) return crash(s);
  slot.limit = std::max(slot.limit, position_below(layout_, limit));
  if (interrupted) {
    // The lock is held; who reads the limit needs none.
    for (Session& other : s.sessions) {
      if (!other.attached || other.database != session.database) continue;
      read_limit(s, other);
      check_limit(s, other);
      while (other.attached && claim(s, other)) {
      }
    }
    return crash(s);
  }
  if (!rules_.highest_before_limit) s.memory.raise_highest(limit);
  read_limit(s, session);
  check_limit(s, session);
}

bool World::claim(Server& s, Session& session) {
  const auto shard = static_cast<size_t>(random_.below(kShards));
  const auto database = static_cast<size_t>(session.database);
  uint64_t& word = s.slots[database].words[shard];
  const uint64_t position = next_position(s, session, static_cast<int>(shard));
  const uint64_t now = layout_.tick_at(std::max(clock(s), layout_.epoch_ms));
  if (layout_.tick_of_position(position) > now + static_cast<uint64_t>(lead_ms_ / 1000))
    return false;
  const uint64_t limit =
      rules_.own_limit ? session.limit : s.slots[static_cast<size_t>(session.database)].limit;
  if (position >= limit) return false;
  word = position;

  const auto region = static_cast<uint64_t>(session.region);
  if (!ids_.insert(position << 8 | region << 4 | database << 2 | shard).second)
    violate("duplicate: region " + std::to_string(region) + " position " +
            std::to_string(position));
  if (!within_a_grant(session, position))
    violate("an id outside of its lease: region " + std::to_string(region));
  furthest_[session.incarnation] = std::max(furthest_[session.incarnation], clock(s));
  uint64_t& last = last_of_[session.incarnation][database][shard];
  if (position <= last) violate("order within an incarnation");
  last = position;
  if (position <= s.disk.observed[static_cast<size_t>(session.database)]) violate("observe()");
  happened("id");
  return true;
}

// A session that nobody interrupts mints as much as it may.
void World::burst(Server& s, Session& session) {
  if (!session.attached ||
      s.slots[static_cast<size_t>(session.database)].generation != session.generation)
    attach(s, session);
  for (uint64_t left = random_.between(1, 6); session.attached && left > 0; --left) {
    if (claim(s, session)) continue;
    write_mark(s, session);
    publish(s, session, false);
  }
}

void World::observe(Server& s, Session& session) {
  const auto database = static_cast<size_t>(session.database);
  const LeaseView lease = s.memory.view();
  if (lease.region == kNoRegion) return;
  const auto ms = static_cast<int64_t>(random_.between(0, static_cast<uint64_t>(2 * lease_ms_))) +
                  clock(s) - lease_ms_ / 2;
  if (ms < layout_.epoch_ms) return;
  int64_t mark = ms;
  if (ms > lease.until_ms) {
    if (rules_.observe_below_until) return;
    mark = lease.until_ms;
  }
  s.disk.mark[database] = std::max(s.disk.mark[database], mark);
  raise_words(s.slots[database], mark);
  if (rules_.observe_below_until || mark == ms)
    s.disk.observed[database] =
        std::max(s.disk.observed[database], position_from(layout_, mark) - 1);
  else
    s.disk.observed[database] = std::max(s.disk.observed[database], position_from(layout_, ms) - 1);
  happened("observe");
}

// Dropped, and restored from a backup of whatever age, while the server runs.
void World::restore_database(Server& s) {
  const auto database = static_cast<size_t>(random_.below(kDatabases));
  const auto& backup = backups_[random_.below(backups_.size())].second;
  s.disk.mark[database] = backup.mark[database];
  s.disk.observed[database] = backup.observed[database];
  s.slots[database] = Slot{{}, s.slots[database].generation + 1, 0};
  for (Session& session : s.sessions)
    if (static_cast<size_t>(session.database) == database) session.attached = false;
  happened("database restored");
}

void World::ask(size_t number) {
  Server& s = servers_[number];
  const LeaseView mine = s.memory.view();
  if (s.worker.giving_back) {
    s.worker.back.clock_ms = clock(s);
    asked_.push_back({number, s.worker.back});
    return;
  }
  LeaseRequest request{};
  request.call = mine.region == kNoRegion ? LeaseCall::acquire : LeaseCall::renew;
  request.server = s.role;
  request.incarnation = mine.incarnation;
  request.term = mine.term;
  request.newest = mine.newest;
  request.proven = mine.proof == model_signature({mine.term, mine.newest});
  request.nonce = s.worker.nonce.next;
  request.acked = s.worker.nonce.acked;
  // Otherwise the renewal is taken for a copy's, and the region is lost.
  if (request.acked != 0 && !recorded_.contains(request.acked))
    violate("a nonce is acknowledged that no grant has answered");
  request.clock_ms = clock(s);
  request.length_ms = lease_ms_ + lead_ms_;
  request.age_ms = now_ - s.born;
  request.ahead_ms = lead_ms_ + reserve_ms_;
  request.region = mine.region;
  request.floor_ms = mine.floor_ms;
  request.until_ms = mine.until_ms;
  request.titled = !rules_.adopt_signed_only ||
                   mine.title == model_signature({s.role, mine.incarnation, mine.region,
                                                  mine.floor_ms, mine.until_ms});
  asked_.push_back({number, request});
}

void World::give_back(size_t number) {
  Server& s = servers_[number];
  if (s.worker.giving_back || s.memory.view().region == kNoRegion) return;
  LeaseView mine = s.memory.view();
  if (rules_.forget_then_read) {
    withdraw(s);
  } else {
    // Read the highest limit, let a session in mid-extension go on, then withdraw.
    publish(s, s.sessions[random_.below(kSessions)], false);
    for (Session& session : s.sessions) claim(s, session);
    withdraw(s);
  }
  if (!rules_.highest_of_all) {
    // What the last database that extended its mark has.
    mine.highest_ms = covered_until(s.disk.mark[random_.below(kDatabases)], mine.until_ms);
  }
  if (rules_.forget_at_all) s.memory.forget();
  if (Kill::dead()) return;
  s.worker.giving_back = rules_.forget_at_all;
  LeaseRequest& back = s.worker.back;
  back = LeaseRequest{};
  back.call = LeaseCall::give_back;
  back.server = s.role;
  back.incarnation = mine.incarnation;
  back.term = mine.term;
  back.newest = mine.newest;
  back.proven = mine.proof == model_signature({mine.term, mine.newest});
  back.clock_ms = clock(s);
  back.region = mine.region;
  back.grant = mine.grant;
  back.highest_ms = mine.highest_ms;
  asked_.push_back({number, back});
  happened("give back");
}

void World::hear(const Told& told) {
  Server& s = servers_[told.server];
  if (!s.up) return;
  const LeaseView mine = s.memory.view();
  const int64_t received = clock(s);
  const LeaseAnswer& answer = told.answer;
  if (told.nonce == s.worker.nonce.next && answer.call != LeaseCall::give_back)
    s.worker.nonce.answered(rules_.grant_acks ? answer.status : AnswerStatus::granted, draw());
  switch (read_answer(mine, s.worker.giving_back, answer, told.sent_ms, received, skew_ms_)) {
    case LeaseNews::stale:
    case LeaseNews::refused:
    case LeaseNews::apart:
      return;
    case LeaseNews::taken: {
      LeaseAnswer taken = answer;
      // Goes on as who it was, with the time that it had.
      if (!rules_.lost_is_new) taken.until_ms = std::max(mine.until_ms, answer.until_ms);
      s.memory.take(taken);
      happened("taken");
      break;
    }
    case LeaseNews::extended:
      s.memory.extend(answer);
      happened("extended");
      break;
    case LeaseNews::full:
      s.memory.note(answer);
      happened("full");
      break;
    case LeaseNews::given_back:
      s.memory.note(answer);
      s.worker.giving_back = false;
      happened("given back");
      break;
    case LeaseNews::lost:
      withdraw(s);
      s.born = now_;
      if (rules_.lost_is_new) {
        s.memory.begin(draw(), answer);
      } else {
        s.memory.forget();
        s.memory.note(answer);
      }
      happened("lost");
      break;
  }
}

}  // namespace snowflake
