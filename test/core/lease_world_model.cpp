// Simulates the events of the lease model: messages that are late, repeated or lost, and faults of
// servers.
#include "lease_world.hpp"

#include <set>

namespace snowflake {

namespace {
constexpr size_t kMostServers = 4;
constexpr size_t kMostInFlight = 12;
}  // namespace

World::World(Random random, const Rules& rules)
    : random_(random), rules_(rules), layout_(layout_from("30/3+1/1", 1000)) {
  lease_ms_ = static_cast<int64_t>(random_.between(10, 60)) * 1000;
  lead_ms_ = static_cast<int64_t>(random_.below(4)) * 1000;
  reserve_ms_ = static_cast<int64_t>(random_.between(1, random_.percent(30) ? 60 : 8)) * 1000;
  skew_ms_ = lease_ms_ / 4;
  recoveries_ = random_.percent(50);
  tame_ = recoveries_ || random_.percent(50);
  wild_lease_server_ = recoveries_ && random_.percent(50);
  forgetful_ = !tame_ && random_.percent(50);
  now_ = layout_.epoch_ms + 10'000'000;

  lease_server_.fleet.term = lease_server_.fleet.lasting = term_at(now_, draw());
  lease_server_.fleet.longest_ms = lease_ms_ + lead_ms_;
  lease_server_.fleet.skew_ms = skew_ms_;
  servers_.resize(random_.between(2, 3));
  int32_t regions = 0;
  for (size_t i = 0; i < servers_.size(); ++i) {
    own_.emplace_back();
    for (uint64_t left = random_.between(1, 2); left > 0; --left) own_.back().push_back(regions++);
  }
  lease_server_.regions.assign(static_cast<size_t>(regions), LeasedRegion{});
  // Without the rule own_regions, the configuration of each server contains all regions.
  if (!rules_.own_regions)
    for (std::vector<int32_t>& own : own_) {
      own.clear();
      for (int32_t i = 0; i < regions; ++i) own.push_back(i);
    }
  lease_server_backups_.push_back(lease_server_);
  backups_.push_back({0, Durable{}});
  for (size_t i = 0; i < servers_.size(); ++i) {
    servers_[i].role = static_cast<int>(i);
    start(servers_[i], false);
  }
  servers_.reserve(kMostServers);
}

void World::run(int steps) {
  faults_ = true;
  for (int i = 0; i < steps && violation_.empty(); ++i) step();
  faults_ = false;
  if (violation_.empty()) settle();
}

void World::step() {
  switch (random_.below(32)) {
    case 0:
      step_clock();
      break;
    case 1:
      now_ += static_cast<int64_t>(random_.below(random_.percent(10) ? 20'000 : 2500));
      break;
    case 2:
      fail_lease_server();
      break;
    case 3:
      if (random_.percent(25)) operate();
      if (random_.percent(25) && rules_.own_regions) mistake();
      break;
    case 4:
    case 5:
    case 6:
      if (!requests_.empty()) decide_one(random_.below(requests_.size()));
      break;
    case 7:
    case 8:
    case 9:
      if (!answers_.empty()) {
        const size_t i = random_.below(answers_.size());
        const SentAnswer sent = answers_[i];
        if (!random_.percent(20)) answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(i));
        // The lease worker may be killed at any of its stores to memory. If the lease worker is
        // killed, the postmaster restarts all processes.
        Server& s = servers_[sent.server];
        // In some cases, sessions write the high-water mark before the lease server's answer
        // arrives. After the answer of the lease server, sessions that are chosen at random publish
        // the limit for new ids.
        const bool crowded = s.up && random_.percent(30);
        for (Session& session : s.sessions)
          if (crowded && session.attached) write_mark(s, session);
        Kill::stores_left = random_.percent(15) ? static_cast<int>(random_.below(24)) : -1;
        receive(sent);
        const bool killed = Kill::dead();
        Kill::stores_left = -1;
        if (killed) crash(s);
        for (Session& session : s.sessions)
          if (crowded && random_.percent(30)) publish(s, session, false);
      }
      break;
    case 10:
      clone();
      break;
    default:
      step_server(random_.below(servers_.size()));
  }
  while (requests_.size() > kMostInFlight) requests_.erase(requests_.begin());
  while (answers_.size() > kMostInFlight) answers_.erase(answers_.begin());
}

void World::step_server(size_t number) {
  Server& s = servers_[number];
  if (!s.up) {
    if (random_.percent(20)) start(s, !rules_.start_is_new);
    return;
  }
  if (s.memory.view().region == kNoRegion && random_.percent(20)) return ask(number);
  Session& session = s.sessions[random_.below(kSessions)];
  switch (random_.below(24)) {
    case 0:
      ask(number);
      break;
    case 1:
      if (random_.percent(20)) crash(s);
      break;
    case 2:
      if (random_.percent(5)) s.up = false;
      break;
    case 3:
      if (random_.percent(30)) {
        Kill::stores_left = random_.percent(20) ? static_cast<int>(random_.below(12)) : -1;
        give_back(number);
        const bool killed = Kill::dead();
        Kill::stores_left = -1;
        if (killed) crash(s);
      }
      break;
    case 4:
      if (s.worker.giving_back && random_.percent(20)) {
        // The lease worker is restarted while its request is on the way to the lease server.
        s.worker = Worker{};
        s.worker.nonce = {draw(), 0};
      } else if (random_.percent(20)) {
        if (!forgetful_) restore_database(s);
      } else {
        backup(s);
      }
      break;
    case 5:
      if (session.attached) observe(s, session);
      break;
    case 6:
    case 7:
    case 8:
    case 9:
      if (session.attached) take_limit(s, session);
      break;
    case 10:
    case 11:
    case 12:
      if (session.attached) write_mark(s, session);
      break;
    case 13:
    case 14:
    case 15:
      publish(s, session, random_.percent(6));
      break;
    case 16:
    case 17:
      burst(s, session);
      break;
    default:
      if (!session.attached)
        attach(s, session);
      else
        claim(s, session);
  }
}

void World::step_clock() {
  Server& s = servers_[random_.below(servers_.size())];
  const auto apart = static_cast<uint64_t>(skew_ms_ / 2);
  const auto swing = wild_lease_server_
                         ? std::min<uint64_t>(3000, apart)
                         : static_cast<uint64_t>(random_.percent(30) ? 4 * lease_ms_ : 3000);
  s.clock_off = random_.percent(30)
                    ? 0
                    : static_cast<int64_t>(random_.below(2 * swing)) - static_cast<int64_t>(swing);
  const auto off = tame_ && !wild_lease_server_ ? apart : static_cast<uint64_t>(3 * lease_ms_);
  if (random_.percent(20))
    lease_server_off_ =
        static_cast<int64_t>(random_.below(2 * off + 1)) - static_cast<int64_t>(off);
}

void World::decide_one(size_t index) {
  const SentRequest sent = requests_[index];
  if (!random_.percent(15)) requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
  if (random_.percent(5)) return;
  const LeaseRequest& request = sent.request;
  const bool at_old = old_ && (lease_server_moved_ || random_.percent(50));
  LeaseServer& reached = at_old ? *old_ : lease_server_;
  if (lease_server_moved_ && rules_.identity_checked && !at_old) {
    halt_if_behind(lease_server_.fleet, request);
    return;
  }
  LeaseServer next = reached;
  const bool adopts = request.call == LeaseCall::renew &&
                      next.regions[static_cast<size_t>(request.region)].incarnation == 0;
  // If files of the lease server are restored in place, its timeline does not change. A restore is
  // detected only when a server reports a lease that was granted after the backup. Until a restore
  // of the lease server is detected, the model ignores requests, although a real lease server would
  // answer them.
  if (lease_server_replaced_ && !at_old && !forgetful_ && request.term <= next.fleet.term &&
      (request.term < next.fleet.term || request.newest <= next.fleet.newest))
    return;
  if (!rules_.own_regions)
    for (LeasedRegion& region : next.regions) region.server = request.server;
  LeaseRequest seen = request;
  if (!rules_.both_clocks && request.call == LeaseCall::acquire)
    seen.clock_ms = std::max(seen.clock_ms, now_ + lease_server_off_);
  const LeaseAnswer answer =
      decide(next.fleet, next.regions, own_[static_cast<size_t>(request.server)], seen,
             now_ + lease_server_off_);
  const bool committed = !random_.percent(8);
  if (committed) reached = next;
  if (committed) note_grant(request, answer);
  if (committed && !at_old) lease_server_replaced_ = false;
  if (committed && at_old) nothing_lost_ = false;
  // A server receives the rows of an answer before the lease server commits. Without the rule
  // commit_first, a server uses an answer even if the lease server's COMMIT fails.
  if ((committed || !rules_.commit_first) && !random_.percent(10))
    answers_.push_back({sent.server, request.clock_ms, request.nonce, answer});
  if (answer.status == AnswerStatus::halted) happened("halted");
  if (answer.status == AnswerStatus::taken) violate("a server is refused a region of its own");
  if (adopts && answer.status == AnswerStatus::granted) happened("adopted");
}

void World::note_grant(const LeaseRequest& request, const LeaseAnswer& answer) {
  if (answer.status == AnswerStatus::granted) recorded_.insert(request.nonce);
  if (answer.status == AnswerStatus::granted)
    grants_.push_back({answer.incarnation, answer.region, answer.floor_ms, answer.until_ms});
  if (answer.status != AnswerStatus::given_back) return;
  for (Grant& grant : grants_)
    if (grant.incarnation == request.incarnation && grant.region == request.region)
      grant.until_ms = std::min(grant.until_ms, request.highest_ms);
}

bool World::within_a_grant(const Session& session, uint64_t position) const {
  for (const Grant& grant : grants_)
    if (grant.incarnation == session.incarnation && grant.region == session.region &&
        position >= position_from(layout_, grant.floor_ms) &&
        position < position_below(layout_, grant.until_ms))
      return true;
  return false;
}

void World::fail_lease_server() {
  if (random_.percent(50)) {
    lease_server_backups_.push_back(lease_server_);
    if (lease_server_backups_.size() > 4)
      lease_server_backups_.erase(lease_server_backups_.begin() + 1);
    return;
  }
  if (forgetful_ && random_.percent(10)) {
    // Restores any earlier state of the lease server, even the state of a new installation.
    lease_server_ = lease_server_backups_[random_.below(lease_server_backups_.size())];
    happened("lease server put back unnoticed");
    return;
  }
  if (!recoveries_ || !random_.percent(10)) return;
  // Promotes a standby of the lease server, or restores a backup. The promoted standby may lack
  // commits, and the old lease server may still run.
  const LeaseServer before = lease_server_;
  if (random_.percent(60))
    lease_server_ = lease_server_backups_[random_.below(lease_server_backups_.size())];
  if (random_.percent(70)) {
    nothing_lost_ = lease_server_.fleet.newest == before.fleet.newest &&
                    lease_server_.fleet.term == before.fleet.term && !before.fleet.halted &&
                    !lease_server_replaced_ && (nothing_lost_ || !lease_server_moved_);
    if (random_.percent(50) && !lease_server_moved_ && !lease_server_replaced_) old_ = before;
    lease_server_moved_ = true;
  } else {
    lease_server_replaced_ = true;
    nothing_lost_ = false;
  }
  happened("lease server recovered");
}

void World::backup(const Server& s) {
  backups_.push_back({s.role, s.disk});
  if (backups_.size() > 6) backups_.erase(backups_.begin());
}

void World::clone() {
  if (!random_.percent(10) || forgetful_) return;
  const Server& original = servers_[random_.below(servers_.size())];
  Server copy;
  copy.role = original.role;
  copy.disk = original.disk;
  copy.memory = original.memory;
  if (random_.percent(50)) {
    const auto& old = backups_[random_.below(backups_.size())];
    copy.role = old.first;
    copy.disk = old.second;
  }
  copy.clock_off = original.clock_off;
  size_t place = servers_.size();
  if (place == kMostServers) {
    place = random_.below(kMostServers);
    servers_[place] = copy;
  } else {
    servers_.push_back(copy);
  }
  start(servers_[place], !rules_.start_is_new);
  happened("clone");
}

void World::settle() {
  // Simulates servers without faults: clocks are right, an operator confirms recoveries, and no
  // more servers run than there are regions.
  std::vector<size_t> runs(own_.size());
  std::erase_if(servers_, [&](const Server& s) {
    const auto role = static_cast<size_t>(s.role);
    return ++runs[role] > own_[role].size();
  });
  requests_.clear();
  answers_.clear();
  int64_t latest = now_;
  if (!tame_)
    for (const LeasedRegion& region : lease_server_.regions)
      latest = std::max(latest, region.until_ms);
  lease_server_off_ = 0;
  for (Server& s : servers_) {
    s.clock_off = 0;
    // A database whose high-water mark was written with a wrong clock waits until the right clock
    // has passed the high-water mark.
    if (!tame_)
      for (const int64_t mark : s.disk.mark) latest = std::max(latest, mark);
    if (!s.up) start(s, false);
    s.worker.giving_back = false;
  }
  recover();
  // Every server must mint an id in each of its databases before the time `end`. The time `end` is
  // later than the ends of all leases that were granted before settle() was called.
  const int64_t end = latest + 2 * (lease_ms_ + lead_ms_ + 2 * skew_ms_) + reserve_ms_ + 10'000;
  const size_t wanted = servers_.size() * kDatabases;
  std::set<std::pair<size_t, int>> minted;
  for (int round = 0; now_ < end && minted.size() < wanted && violation_.empty(); ++round) {
    now_ += 1000;
    recover();  // a server's term is newer
    for (size_t i = 0; i < servers_.size(); ++i) {
      Server& s = servers_[i];
      if (round % 3 == 0 || s.memory.view().region == kNoRegion) {
        ask(i);
        const size_t before = answers_.size();
        while (!requests_.empty()) decide_one(requests_.size() - 1);
        while (answers_.size() > before) {
          const SentAnswer sent = answers_.back();
          answers_.pop_back();
          receive(sent);
        }
      }
      for (Session& session : s.sessions) {
        for (int tries = 0; tries < 3; ++tries) {
          if (is_good(s, session)) {
            if (claim(s, session)) {
              minted.insert({i, session.database});
              break;
            }
            write_mark(s, session);
            publish(s, session, false);
          } else {
            attach(s, session);
          }
        }
      }
    }
  }
  if (minted.size() < wanted && violation_.empty())
    violate("not everybody mints again: " + std::to_string(minted.size()) + " of " +
            std::to_string(wanted) + " databases");
}

}  // namespace snowflake
