// Simulates a lease server and the servers that lease regions from it, with their databases,
// sessions and lease workers. The simulation runs in small steps and causes faults. The simulated
// lease server decides with the reference model in lease_server.hpp. The simulated servers use the
// extension's code in core/lease_memory.hpp and core/limits.hpp. In the extension's code (src/pg),
// sessions and lease workers must execute their steps in the same order as in the simulation. The
// structure `Rules` turns off single rules of the lease protocol, to show that each rule is needed.
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
  bool reopen_at_highest = true;
  bool reopen_at_mark = true;
  bool highest_before_limit = true;  // highest limit raised before publishing
  bool highest_of_all = true;        // of all databases, not one
  bool reader_checks = true;         // readers check the generation again
  bool own_limit = true;             // claims use the session's limit
  bool start_is_new = true;          // starts and clones: new incarnation
  bool forget_then_read = true;      // withdrawn and read under lock
  bool forget_at_all = true;         // forget the region before give_back
  bool lost_is_new = true;           // lost region ends the incarnation
  bool mark_below_until = true;      // no mark above `until`
  bool observe_below_until = true;   // observe() fails beyond `until`
  bool commit_first = true;          // answers count after COMMIT
  bool identity_checked = true;      // lease server checks its identity
  bool lease_checked = true;         // limits are within the lease
  bool grant_acks = true;            // acknowledged only by its grant
  bool adopt_while_leased = true;    // only unended leases continue
  bool own_regions = true;           // only configured regions are granted
  bool both_clocks = true;           // both clocks passed the end
  bool dead_by_reserve = true;       // confirm_dead() adds lead and reserve
  bool old_is_stopped = true;        // old lease server is stopped
};

// Simulates a process that is killed after `stores_left` stores to memory, by ignoring all later
// stores.
struct Kill {
  static inline int stores_left = -1;  // -1: no process is killed
  static bool dead() { return stores_left == 0; }
};
// Simulates that other sessions run before a session loads a variable in shared memory. After a
// session has loaded shared variables `loads_left` times, the function `run` is called once.
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

// Contains the durable state of a server. Backups and standbys of a simulated server copy its
// durable state.
struct Durable {
  std::array<int64_t, kDatabases> mark{};
  std::array<uint64_t, kDatabases> observed{};  // highest id of observe()
};

struct Session {
  int database = 0;
  bool attached = false;
  uint64_t process = 0;  // number of the attached process
  uint32_t generation = 0;
  int64_t incarnation = 0;
  int32_t region = kNoRegion;
  uint64_t limit = 0;
  std::optional<int64_t> written_mark;  // flushed, but not published
};

struct Slot {
  std::array<uint64_t, kShards> counters{};
  ModelLimits limits;
};

struct Worker {
  bool giving_back = false;
  LeaseRequest back{};  // repeated until it is answered
  LeaseNonce nonce{1, 0};
};

struct Server {
  bool up = false;
  int role = 0;  // login role, shared by clones
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
// A lease permits an incarnation (server run) to issue ids of a region from the time `floor_ms` up
// to, but excluding, `until_ms`.
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

  // The function run() simulates random requests, minted ids and faults. The function settle()
  // simulates servers without faults, and checks that every server mints ids again.
  void run(int steps);
  void settle();

  const std::string& violation() const { return violation_; }
  size_t ids() const { return ids_.size(); }
  int count(const char* event) const {
    const auto found = events_.find(event);
    return found == events_.end() ? 0 : found->second;
  }

 private:
  // lease_member_model.cpp
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

  // lease_world_model.cpp
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
  bool tame_;  // lease server's clock within max_skew
  bool recoveries_;
  bool wild_lease_server_;
  bool forgetful_;                         // undetected restores, wrong operators
  std::vector<std::vector<int32_t>> own_;  // configured regions of each role
  int64_t now_;
  uint64_t processes_ = 0;
  bool faults_ = false;  // between run() and settle()
  int64_t lease_server_off_ = 0;
  std::vector<Server> servers_;
  LeaseServer lease_server_;
  std::optional<LeaseServer> old_;  // not stopped at the promotion
  std::vector<LeaseServer> lease_server_backups_;
  bool lease_server_moved_ = false;     // has another timeline or system
  bool nothing_lost_ = false;           // after a failover without loss
  bool lease_server_replaced_ = false;  // files restored, same timeline
  std::vector<std::pair<int, Durable>> backups_;
  std::vector<SentRequest> requests_;
  std::vector<SentAnswer> answers_;
  std::unordered_set<uint64_t> ids_;
  std::unordered_set<int64_t> recorded_;           // nonces of committed grants
  std::vector<Grant> grants_;                      // committed, even if lost later
  std::unordered_map<int64_t, int64_t> furthest_;  // latest time of each incarnation
  // Stores the last position (time and sequence number) of each database and shard for each server
  // run (incarnation).
  std::unordered_map<int64_t, std::array<std::array<uint64_t, kShards>, kDatabases>> last_of_;
  std::unordered_map<std::string, int> events_;
  std::string violation_;
};

}  // namespace snowflake
