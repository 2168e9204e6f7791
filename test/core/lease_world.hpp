// Models a fleet in small steps: servers with databases, sessions and a worker, a lease server, and
// all events that can happen. The decisions of the model are made by the code under test. The code
// in src/pg must make its steps in the same order as this model. `Rules` can turn off single rules
// of the protocol, to show that each rule is needed.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/lease_memory.hpp"
#include "core/limits.hpp"
#include "lease_server.hpp"
#include "support.hpp"

namespace snowflake {

struct Rules {
  bool reopen_at_highest = true;     // attaching raises the counters to the highest limit
  bool reopen_at_mark = true;        // attaching raises the counters to the high-water mark
  bool highest_before_limit = true;  // the highest limit is raised before a limit is published
  bool highest_of_all = true;    // the highest limit is that of all databases, not of the last one
  bool reader_checks = true;     // after a limit is read, the generation is checked again
  bool own_limit = true;         // a claim is bounded by the session's own copy of the limit
  bool start_is_new = true;      // a start, a clone or a promotion begins a new incarnation
  bool forget_then_read = true;  // give back: limits are withdrawn and read under one lock
  bool forget_at_all = true;     // give back: the region is forgotten before the request is sent
  bool lost_is_new = true;       // if a server has lost its region, its incarnation ends
  bool mark_below_until = true;  // no high-water mark above `until` is written
  bool observe_below_until = true;  // observe() beyond `until` fails instead of using `until`
  bool commit_first = true;         // an answer is used only when its commit is confirmed
  bool identity_checked = true;     // the lease server checks its timeline and system identifier
  bool lease_checked = true;        // a published limit does not exceed the lease
  bool grant_acks = true;           // a nonce is acknowledged only by the grant for its request
  bool adopt_while_leased = true;   // after a recovery only leases continue that had not ended
  bool own_regions = true;          // a server is granted its own regions only
  bool both_clocks = true;          // a region is free if both servers' clocks have passed its end
  bool dead_by_reserve = true;      // a dead holder's region ends only after lead and reserve
  bool old_is_stopped = true;       // the old lease server is stopped before an operator confirms
};

// Models an atomic word whose writer may be killed. After the last store of a killed writer, later
// stores have no effect.
struct Kill {
  static inline int stores_left = -1;  // -1 if no process will be killed
  static bool dead() { return stores_left == 0; }
};
// Lets other sessions run once, before the load with the given number of one session.
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

// Models the durable state, for a backup, a standby or a crash.
struct Durable {
  std::array<int64_t, kDatabases> mark{};
  std::array<uint64_t, kDatabases> observed{};  // raised by observe(), below later positions
};

struct Session {
  int database = 0;
  bool attached = false;
  uint64_t process = 0;  // the ordinal number of the process that has attached
  uint32_t generation = 0;
  int64_t incarnation = 0;
  int32_t region = kNoRegion;
  uint64_t limit = 0;
  std::optional<int64_t> written_mark;  // flushed, but not yet published
};

// Models the part of shared memory that belongs to one database.
struct Slot {
  std::array<uint64_t, kShards> counters{};
  ModelLimits limits;
};

struct Worker {
  bool giving_back = false;
  LeaseRequest back{};  // the request to give back, which is sent until it is answered
  LeaseNonce nonce{1, 0};
};

struct Server {
  bool up = false;
  int role = 0;  // the login role, which a clone has in common with its original
  int64_t clock_off = 0;
  int64_t born = 0;
  ModelMemory memory;
  Durable disk;
  std::array<Slot, kDatabases> slots{};
  std::array<Session, kSessions> sessions{};
  Worker worker;
};

struct LeaseServer {
  FleetState fleet{};
  std::vector<LeasedRegion> regions;
};

struct SentRequest {
  size_t server;
  LeaseRequest request;
};
// In a grant an incarnation may issue ids of a region from `floor_ms` to before `until_ms`.
struct Grant {
  int64_t incarnation;
  int32_t region;
  int64_t floor_ms;
  int64_t until_ms;
};
struct SentAnswer {
  size_t server;
  int64_t sent_ms;
  int64_t nonce;
  LeaseAnswer answer;
};

class World {
 public:
  World(Random random, const Rules& rules);

  // run() makes faults and work in random order. After run(), settle() works without faults, and
  // every server must mint.
  void run(int steps);
  void settle();

  const std::string& violation() const { return violation_; }
  size_t ids() const { return ids_.size(); }
  int count(const char* event) const {
    const auto found = events_.find(event);
    return found == events_.end() ? 0 : found->second;
  }

 private:
  // Actions of a server, defined in lease_member_model.cpp
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
  void receive(const SentAnswer& sent);
  void raise_counters(Slot& slot, uint64_t floor);
  bool is_good(Server& s, const Session& session) const;
  uint64_t next_position(const Server& s, const Session& session, int shard) const;

  // Events that happen to servers, defined in lease_world_model.cpp
  void step();
  void step_server(size_t number);
  void step_clock();
  void decide_one(size_t index);
  void fail_lease_server();
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
  bool tame_;               // true if the lease server's clock is right to within max_skew
  bool recoveries_;         // true if earlier states are restored, with a right clock
  bool wild_lease_server_;  // the lease server's clock is right only during operators' calls
  bool forgetful_;          // true if restores are not detected and operators err, without clones
  std::vector<std::vector<int32_t>> own_;  // the configured regions of each role
  int64_t now_;
  uint64_t processes_ = 0;
  bool faults_ = false;  // true after run() has begun, and before settle() begins
  int64_t lease_server_off_ = 0;
  std::vector<Server> servers_;
  LeaseServer lease_server_;
  std::optional<LeaseServer> old_;  // the old lease server, which runs next to the promoted one
  std::vector<LeaseServer> lease_server_backups_;
  bool lease_server_moved_ = false;     // true if the lease server has another timeline or system
  bool nothing_lost_ = false;           // true if the moved lease server has lost no decision
  bool lease_server_replaced_ = false;  // true if older files were restored, without a new timeline
  std::vector<std::pair<int, Durable>> backups_;
  std::vector<SentRequest> requests_;
  std::vector<SentAnswer> answers_;
  std::unordered_set<uint64_t> ids_;
  std::unordered_set<int64_t> recorded_;  // nonces that committed grants have answered
  std::vector<Grant> grants_;  // all committed grants, including those that the lease server lost
  std::unordered_map<int64_t, int64_t> furthest_;  // by incarnation: its latest time
  // Contains for each incarnation the last position of each database and shard.
  std::unordered_map<int64_t, std::array<std::array<uint64_t, kShards>, kDatabases>> last_of_;
  std::unordered_map<std::string, int> events_;
  std::string violation_;
};

}  // namespace snowflake
