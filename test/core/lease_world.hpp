// A small model of a fleet: servers with databases, sessions and a worker, a lease server, and all
// possible events, one step at a time. The decisions are the code under test. The order of steps is
// a requirement for the glue. `Rules` takes single rules out, to show that each is needed.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/lease_memory.hpp"
#include "core/limits.hpp"
#include "lease_control.hpp"
#include "support.hpp"

namespace snowflake {

struct Rules {
  bool reopen_at_highest = true;     // who attaches raises the counters to the highest limit
  bool reopen_at_mark = true;        // and to the mark
  bool highest_before_limit = true;  // the highest limit is raised before a limit is published
  bool highest_of_all = true;        // over all databases, not that of the one that published last
  bool reader_checks = true;         // a limit is read, then the generation checked once more
  bool own_limit = true;             // a claim is bounded by the session's copy, of its region
  bool start_is_new = true;          // a start, a clone, a promotion is a new incarnation
  bool forget_then_read = true;      // give back: withdraw and read the highest limit in one lock
  bool forget_at_all = true;         // give back: forget the region before it is sent
  bool lost_is_new = true;           // a region that was lost ends the incarnation
  bool mark_below_until = true;      // no mark is written above `until`
  bool observe_below_until = true;   // observe() beyond it is refused, not cut
  bool commit_first = true;          // an answer is believed when the commit has been confirmed
  bool identity_checked = true;      // timeline and system identifier
  bool lease_checked = true;         // the limit is also the lease's
  bool grant_acks = true;            // only a grant acknowledges the nonce that it answers
  bool adopt_while_leased =
      true;                     // after a recovery only those go on whose lease was still running
  bool own_regions = true;      // a server is granted its own regions only
  bool both_clocks = true;      // a region is free when both clocks have passed its end
  bool dead_by_reserve = true;  // a dead holder's region ends beyond lead and reserve, not now
  bool old_is_stopped = true;   // the old control database, when an operator speaks to the new
};

// A word whose writer may be killed: it counts the stores that are left to it, and drops the rest.
struct Kill {
  static inline int stores_left = -1;  // -1: no process will be killed
  static bool dead() { return stores_left == 0; }
};
// Changes by others between the loads of one session: once, before the load of that number.
struct Meanwhile {
  static inline std::function<void()> run;
  static inline int loads_left = 0;
  static void before_load() {
    if (run && loads_left-- == 0) std::exchange(run, nullptr)();
  }
};
template <class T>
struct KillableWord {
  T value{};
  T load(std::memory_order) const {
    Meanwhile::before_load();
    return value;
  }
  void store(T next, std::memory_order) {
    if (Kill::dead()) return;
    if (Kill::stores_left > 0) --Kill::stores_left;
    value = next;
  }
  bool compare_exchange_weak(T& expected, T next, std::memory_order order) {
    if (load(order) != expected) {
      expected = value;
      return false;
    }
    store(next, order);
    return true;
  }
};
using ModelMemory = BasicLeaseMemory<KillableWord>;
using ModelLimits = BasicLimits<KillableWord>;

inline constexpr int kShards = 2;
inline constexpr int kDatabases = 2;
inline constexpr int kSessions = 3;

// The durable state, for a backup, a standby or a crash.
struct Durable {
  std::array<int64_t, kDatabases> mark{};
  std::array<uint64_t, kDatabases> observed{};  // promised by observe(): later positions are above
};

struct Session {
  int database = 0;
  bool attached = false;
  uint64_t process = 0;  // which one, of all that have attached
  uint32_t generation = 0;
  int64_t incarnation = 0;
  int32_t region = kNoRegion;
  uint64_t limit = 0;
  std::optional<int64_t> written_mark;  // flushed, and not yet published
};

// A database's shared memory.
struct Slot {
  std::array<uint64_t, kShards> counters{};
  ModelLimits limits;
};

struct Worker {
  bool giving_back = false;
  LeaseRequest back{};  // the request that gives back, sent until it is answered
  LeaseNonce nonce{1, 0};
};

struct Server {
  bool up = false;
  int role = 0;  // the login role: a clone has its original's
  int64_t clock_off = 0;
  int64_t born = 0;
  ModelMemory memory;
  Durable disk;
  std::array<Slot, kDatabases> slots{};
  std::array<Session, kSessions> sessions{};
  Worker worker;
};

struct Control {
  FleetState fleet{};
  std::vector<LeasedRegion> regions;
};

struct Asked {
  size_t server;
  LeaseRequest request;
};
// The positions of a region that an incarnation may issue: from `floor_ms` to before `until_ms`.
struct Grant {
  int64_t incarnation;
  int32_t region;
  int64_t floor_ms;
  int64_t until_ms;
};
struct Told {
  size_t server;
  int64_t sent_ms;
  int64_t nonce;
  LeaseAnswer answer;
};

class World {
 public:
  World(Random random, const Rules& rules);

  // Faults and work in random order; then work without faults, in which every server must mint.
  void run(int steps);
  void settle();

  const std::string& violation() const { return violation_; }
  size_t ids() const { return ids_.size(); }
  int count(const char* event) const {
    const auto found = events_.find(event);
    return found == events_.end() ? 0 : found->second;
  }

 private:
  // lease_server_model.cpp: what a server does
  int64_t clock(const Server& s) const { return now_ + s.clock_off; }
  void start(Server& s, bool keep_memory);
  void crash(Server& s);
  void withdraw(Server& s);
  void attach(Server& s, Session& session);
  void adopt_mark(Server& s, size_t database);
  void take_limit(Server& s, Session& session);
  void disturb();
  void write_mark(Server& s, Session& session);
  void publish(Server& s, Session& session, bool interrupted);
  bool claim(Server& s, Session& session);
  void burst(Server& s, Session& session);
  void observe(Server& s, Session& session);
  void restore_database(Server& s);
  void ask(size_t number);
  void give_back(size_t number);
  void hear(const Told& told);
  void raise_counters(Slot& slot, uint64_t floor);
  bool is_good(Server& s, const Session& session) const;
  uint64_t next_position(const Server& s, const Session& session, int shard) const;

  // lease_world_model.cpp: what happens to it
  void step();
  void step_server(size_t number);
  void step_clock();
  void decide_one(size_t index);
  void fail_control();
  void mistake();
  void operate();
  void declare_dead(size_t region);
  void recover();
  void clone();
  void backup(const Server& s);
  void note_grant(const LeaseRequest& request, const LeaseAnswer& answer);
  bool lives(int64_t incarnation) const;
  bool within_a_grant(const Session& session, uint64_t position) const;
  int64_t draw() { return static_cast<int64_t>(random_.any() >> 2) + 1; }
  void violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  void happened(const char* event) { ++events_[event]; }

  Random random_;
  Rules rules_;
  Layout layout_;
  int64_t lease_ms_, lead_ms_, reserve_ms_, skew_ms_;
  bool tame_;          // the control database's clock is right to within max_skew
  bool recoveries_;    // it is recovered to earlier states; then its clock is right as well
  bool wild_control_;  // it is right when an operator speaks, and the servers' are right always
  bool forgetful_;     // it is put back at any time without detection, operators err, no server is
                       // cloned
  std::vector<std::vector<int32_t>> own_;  // by role: the regions in its configuration
  int64_t now_;
  uint64_t processes_ = 0;
  bool faults_ = false;  // run() has begun, and settle() has not
  int64_t control_off_ = 0;
  std::vector<Server> servers_;
  Control control_;
  std::optional<Control> old_;  // continues to run next to the promoted copy of an earlier state
  std::vector<Control> control_backups_;
  bool control_moved_ = false;     // another timeline or system than that which the fleet knows
  bool nothing_lost_ = false;      // so far, where it has moved
  bool control_replaced_ = false;  // its files by older ones, which have no new timeline
  std::vector<std::pair<int, Durable>> backups_;
  std::vector<Asked> asked_;
  std::vector<Told> told_;
  std::unordered_set<uint64_t> ids_;
  std::unordered_set<int64_t> recorded_;  // nonces that a committed grant has answered
  std::vector<Grant> grants_;  // all that were committed, also where the control database forgot
  std::unordered_map<int64_t, int64_t> furthest_;  // what its clock has shown to an incarnation
  // Per incarnation: the last position of each database and shard.
  std::unordered_map<int64_t, std::array<std::array<uint64_t, kShards>, kDatabases>> last_of_;
  std::unordered_map<std::string, int> events_;
  std::string violation_;
};

}  // namespace snowflake
