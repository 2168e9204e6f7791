// Simulates the servers of the lease model: sessions, lease workers, and the order of their steps.
#include "lease_world.hpp"

namespace snowflake {

namespace {

constexpr uint64_t kMark = 1;  // one mark per database

// Computes the time up to which sessions may mint ids. The time is within the lease, unless the
// test turns off the rule lease_checked.
struct RuledLease {
  ModelMemory& memory;
  const Rules& rules;

  int64_t cover(int64_t mark_ms) const {
    if (rules.lease_checked && rules.highest_before_limit) return memory.cover(mark_ms);
    if (rules.highest_before_limit) memory.raise_highest(mark_ms);
    return rules.lease_checked ? covered_until(mark_ms, memory.view().until_ms) : mark_ms;
  }
};

}  // namespace

void World::raise_counters(Slot& slot, uint64_t floor) {
  for (uint64_t& counter : slot.counters)
    if (floor != 0 && counter < floor - 1) counter = floor - 1;
}

void World::start(Server& s, bool keep_memory) {
  s.up = true;
  s.born = now_;
  if (!keep_memory) {
    s.memory = ModelMemory{};
    s.memory.begin(draw(), LeaseAnswer{}, [] {});
  }
  crash(s);
}

// Simulates a crash restart, which initializes shared memory again. During a crash restart, the
// postmaster's memory and the disk keep their contents.
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
  for (Slot& slot : s.slots) slot.limits.end_region();
}

void World::disturb() {
  if (!faults_) return;
  for (uint64_t left = random_.below(5); left > 0 && violation_.empty(); --left) step();
}

bool World::is_good(Server& s, const Session& session) const {
  return session.attached &&
         s.slots[static_cast<size_t>(session.database)].limits.is_current(session.generation);
}

void World::adopt_mark(Server& s, size_t database) {
  Slot& slot = s.slots[database];
  slot.limits.adopt(layout_, s.disk.mark[database], [&](uint64_t floor) {
    if (rules_.reopen_at_mark) raise_counters(slot, floor);
  });
}

void World::attach(Server& s, Session& session) {
  const auto database = static_cast<size_t>(session.database);
  const uint64_t process = ++processes_;
  session = Session{};
  session.database = static_cast<int>(database);
  session.process = process;
  Slot& slot = s.slots[database];
  adopt_mark(s, database);
  const MarkBinding binding = slot.limits.bind(kMark, s.disk.mark[database], s.memory.region());
  if (binding.region.region == kNoRegion) return;
  const int64_t incarnation = s.memory.view().incarnation;
  if (random_.percent(10)) disturb();
  if (session.process != process || !s.up) return;
  if (rules_.reopen_at_highest)
    ModelLimits::reopen(layout_, binding, [&](uint64_t floor) { raise_counters(slot, floor); });
  session.generation = binding.generation;
  session.region = binding.region.region;
  session.incarnation = incarnation;
  session.attached = true;
}

// Reads the limit up to which sessions may mint ids. Other sessions may run before each load from
// shared memory.
void World::take_limit(Server& s, Session& session) {
  const ModelLimits& limits = s.slots[static_cast<size_t>(session.database)].limits;
  const uint64_t process = session.process;
  const uint32_t generation = session.generation;
  Meanwhile::loads_left = static_cast<int>(random_.below(2));
  if (faults_ && random_.percent(40)) Meanwhile::run = [this] { disturb(); };
  const std::optional<uint64_t> taken =
      rules_.reader_checks ? limits.take(generation) : limits.read();
  Meanwhile::run = nullptr;
  if (session.process != process) return;  // the session was replaced
  if (taken && s.up)
    session.limit = *taken;
  else
    session.attached = false;
}

uint64_t World::next_position(const Server& s, const Session& session, int shard) const {
  const uint64_t now =
      layout_.first_position(layout_.tick_at(std::max(clock(s), layout_.epoch_ms)));
  const auto& counters = s.slots[static_cast<size_t>(session.database)].counters;
  return std::max(counters[static_cast<size_t>(shard)] + 1, now);
}

// Writes and flushes the high-water mark, but does not publish it as a limit for other sessions.
void World::write_mark(Server& s, Session& session) {
  const int shard = static_cast<int>(random_.below(kShards));
  const uint64_t position = next_position(s, session, shard);
  if (layout_.tick_of_position(position) * 1000 + static_cast<uint64_t>(layout_.epoch_ms) >
      static_cast<uint64_t>(clock(s) + lead_ms_))
    return;  // id too far ahead
  const auto database = static_cast<size_t>(session.database);
  adopt_mark(s, database);
  int64_t& mark = s.disk.mark[database];
  int64_t until = s.memory.view().until_ms;
  if (!rules_.mark_below_until || !rules_.lease_checked) until = INT64_MAX / 4;
  mark = std::max(mark, mark_within_lease(layout_, position, reserve_ms_, until));
  s.slots[database].limits.record_written(mark);
  session.written_mark = mark;
}

void World::publish(Server& s, Session& session, bool interrupted) {
  if (!session.written_mark) return;
  const int64_t mark = *session.written_mark;
  session.written_mark.reset();
  ModelLimits& limits = s.slots[static_cast<size_t>(session.database)].limits;
  RuledLease lease{s.memory, rules_};
  const int stores_left = Kill::stores_left;
  if (interrupted) Kill::stores_left = static_cast<int>(random_.below(3));
  const bool published = limits.publish(layout_, session.generation, mark, &lease);
  Kill::stores_left = stores_left;
  if (interrupted) {
    // Simulates a session that is killed while it publishes a limit up to which sessions may mint
    // ids. PostgreSQL restarts after a killed session. Before PostgreSQL ends the other sessions,
    // they can mint ids up to the limit that the killed session has published.
    const bool faults = std::exchange(faults_, false);
    for (Session& other : s.sessions) {
      if (!other.attached || other.database != session.database) continue;
      take_limit(s, other);
      while (other.attached && claim(s, other)) {
      }
    }
    faults_ = faults;
    return crash(s);
  }
  if (!published) {
    session.attached = false;
    return;
  }
  if (!rules_.highest_before_limit)
    s.memory.raise_highest(covered_until(mark, s.memory.view().until_ms));
  take_limit(s, session);
}

bool World::claim(Server& s, Session& session) {
  const auto shard = static_cast<size_t>(random_.below(kShards));
  const auto database = static_cast<size_t>(session.database);
  uint64_t& counter = s.slots[database].counters[shard];
  const uint64_t position = next_position(s, session, static_cast<int>(shard));
  const uint64_t now = layout_.tick_at(std::max(clock(s), layout_.epoch_ms));
  if (layout_.tick_of_position(position) > now + static_cast<uint64_t>(lead_ms_ / 1000))
    return false;
  const uint64_t limit = rules_.own_limit ? session.limit : s.slots[database].limits.read();
  if (position >= limit) return false;
  counter = position;

  const auto region = static_cast<uint64_t>(session.region);
  if (!ids_.insert(position << 8 | region << 4 | database << 2 | shard).second)
    violate("duplicate: region " + std::to_string(region) + " position " +
            std::to_string(position));
  if (!forgetful_ && !within_a_grant(session, position))
    violate("an id outside of its lease: region " + std::to_string(region));
  furthest_[session.incarnation] = std::max(furthest_[session.incarnation], clock(s));
  uint64_t& last = last_of_[session.incarnation][database][shard];
  if (position <= last) violate("order within an incarnation");
  last = position;
  if (position <= s.disk.observed[static_cast<size_t>(session.database)]) violate("observe()");
  happened("id");
  return true;
}

void World::burst(Server& s, Session& session) {
  if (!is_good(s, session)) attach(s, session);
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
  if (!may_be_observed(ms, lease.until_ms)) {
    if (rules_.observe_below_until) return;
    mark = lease.until_ms;
  }
  adopt_mark(s, database);
  s.disk.mark[database] = std::max(s.disk.mark[database], mark);
  s.slots[database].limits.record_written(s.disk.mark[database]);
  raise_counters(s.slots[database], position_from(layout_, mark));
  if (rules_.observe_below_until || mark == ms)
    s.disk.observed[database] =
        std::max(s.disk.observed[database], position_from(layout_, mark) - 1);
  else
    s.disk.observed[database] = std::max(s.disk.observed[database], position_from(layout_, ms) - 1);
  happened("observe");
}

// Drops a database and restores a backup of any age while the server runs. The function
// restore_database() ends all sessions of the database, because PostgreSQL drops only databases
// without sessions.
void World::restore_database(Server& s) {
  const auto database = static_cast<size_t>(random_.below(kDatabases));
  const auto& backup = backups_[random_.below(backups_.size())].second;
  s.disk.mark[database] = backup.mark[database];
  s.disk.observed[database] = backup.observed[database];
  s.slots[database] = {};
  for (Session& session : s.sessions) {
    if (static_cast<size_t>(session.database) != database) continue;
    session = Session{};
    session.database = static_cast<int>(database);
  }
  happened("database restored");
}

void World::ask(size_t number) {
  Server& s = servers_[number];
  const LeaseView mine = s.memory.view();
  if (s.worker.giving_back) {
    s.worker.back.clock_ms = clock(s);
    requests_.push_back({number, s.worker.back});
    return;
  }
  LeaseRequest request{};
  request.call = mine.region == kNoRegion ? LeaseCall::acquire : LeaseCall::renew;
  request.server = s.role;
  request.incarnation = mine.incarnation;
  request.term = mine.term;
  request.newest = mine.newest;
  request.nonce = s.worker.nonce.next;
  request.acked = s.worker.nonce.acked;
  // A request contains the number (nonce) of the last granted request. If a request contains a
  // wrong nonce, the lease server assumes that a clone of the server that leases the region has
  // sent the request.
  if (request.acked != 0 && !recorded_.contains(request.acked))
    violate("a nonce is acknowledged that no grant has answered");
  request.clock_ms = clock(s);
  request.length_ms = lease_ms_ + lead_ms_;
  request.age_ms = now_ - s.born;
  request.region = mine.region;
  request.floor_ms = mine.floor_ms;
  request.until_ms = mine.until_ms;
  requests_.push_back({number, request});
}

void World::give_back(size_t number) {
  Server& s = servers_[number];
  if (s.worker.giving_back || s.memory.view().region == kNoRegion) return;
  LeaseView mine = s.memory.view();
  const auto end_limits = [&] { withdraw(s); };
  if (!rules_.forget_then_read) {
    // By the rule forget_then_read, a server stops minting in its region before it reads the latest
    // time that its ids may have. If a server read the latest time of its ids first, its sessions
    // could mint later ids before the server stops minting.
    publish(s, s.sessions[random_.below(kSessions)], false);
    for (Session& session : s.sessions) claim(s, session);
  }
  if (rules_.forget_at_all) {
    const LeaseView last = s.memory.forget(end_limits);
    if (rules_.forget_then_read) mine = last;
  } else {
    end_limits();
  }
  if (!rules_.highest_of_all) {
    // Without the rule highest_of_all, the server reports the high-water mark of only one database.
    // Another database may already have minted later ids.
    mine.highest_ms = covered_until(s.disk.mark[random_.below(kDatabases)], mine.until_ms);
  }
  if (Kill::dead()) return;
  s.worker.giving_back = rules_.forget_at_all;
  LeaseRequest& back = s.worker.back;
  back = LeaseRequest{};
  back.call = LeaseCall::give_back;
  back.server = s.role;
  back.incarnation = mine.incarnation;
  back.term = mine.term;
  back.newest = mine.newest;
  back.clock_ms = clock(s);
  back.region = mine.region;
  back.grant = mine.grant;
  back.highest_ms = mine.highest_ms;
  requests_.push_back({number, back});
  happened("give back");
}

void World::receive(const SentAnswer& sent) {
  Server& s = servers_[sent.server];
  if (!s.up) return;
  const LeaseView mine = s.memory.view();
  const int64_t received = clock(s);
  const LeaseAnswer& answer = sent.answer;
  if (sent.nonce == s.worker.nonce.next && answer.call != LeaseCall::give_back)
    s.worker.nonce.answered(rules_.grant_acks ? answer.status : AnswerStatus::granted, draw());
  switch (read_answer(mine, s.worker.giving_back, answer, sent.sent_ms, received, skew_ms_)) {
    case LeaseEvent::stale:
    case LeaseEvent::refused:
    case LeaseEvent::apart:
      return;
    case LeaseEvent::taken: {
      LeaseAnswer taken = answer;
      // By the rule lost_is_new, a server that has lost its lease draws a new number (incarnation)
      // before it requests a new lease. Without the rule lost_is_new, the server keeps the end of
      // the lost lease if the new lease ends earlier.
      if (!rules_.lost_is_new) taken.until_ms = std::max(mine.until_ms, answer.until_ms);
      s.memory.take(taken);
      happened("taken");
      break;
    }
    case LeaseEvent::extended:
      s.memory.extend(answer);
      happened("extended");
      break;
    case LeaseEvent::ask_again:
      s.memory.record(answer);
      happened("requested again");
      break;
    case LeaseEvent::full:
      s.memory.record(answer);
      happened("full");
      break;
    case LeaseEvent::given_back:
      s.memory.record(answer);
      s.worker.giving_back = false;
      happened("given back");
      break;
    case LeaseEvent::lost:
      s.born = now_;
      if (rules_.lost_is_new) {
        s.memory.begin(draw(), answer, [&] { withdraw(s); });
      } else {
        s.memory.forget([&] { withdraw(s); });
        s.memory.record(answer);
      }
      happened("lost");
      break;
  }
}

}  // namespace snowflake
