// Simulates a lease server and two runs of one server at the same time, such as a server and its
// clone. The server and its clone can each lease either of the two regions. The test tries all
// orders of a few steps. After each step, the server and the clone mint all ids that they may mint,
// so that every possible duplicate occurs.
#include "lease_support.hpp"

#include <array>
#include <unordered_map>

namespace snowflake {
namespace {

constexpr int64_t kUnit = 1000;  // lease: 4 units
constexpr int64_t kBegin = kDefaultEpoch + 1'000'000'000;
constexpr int kRegions = 2;
constexpr std::array<int32_t, kRegions> kOwn{0, 1};

struct Run {
  int64_t incarnation = 0;
  int64_t nonce = 1, acked = 0;
  int64_t term = 0, newest = 0, grant = 0, floor = 0, until = 0, highest = 0;
  int32_t region = kNoRegion;
  bool giving_back = false;
  bool sent = false, answered = false;  // on its way
  LeaseRequest request{};
  LeaseAnswer answer{};
  int64_t sent_at = 0;
};

struct Small {
  FleetState fleet{};
  std::array<LeasedRegion, kRegions> regions{};
  FleetState old_fleet{};
  std::array<LeasedRegion, kRegions> old_regions{};
  bool moved = false, lost = false;
  int64_t now = kBegin, lease_server_off = 0, drawn = 10;
  std::array<Run, 2> runs{};
  std::array<std::array<uint64_t, 2>, kRegions> minted{};  // a bit for each kUnit
  bool violated = false;
};

struct SmallRules {
  bool identity_checked = true;
  bool floors_kept = true;
};

class Explorer {
 public:
  explicit Explorer(const SmallRules& rules) : rules_(rules) {}
  bool search(const Small& world, int depth) {
    if (world.violated) return true;
    if (depth == 0) return false;
    int& done = seen_[hash(world)];
    if (done >= depth) return false;
    done = depth;
    for (int step = 0; step < kSteps; ++step) {
      Small next = world;
      if (!act(next, step)) continue;
      mint(next);
      ++taken_;
      if (search(next, depth - 1)) return true;
    }
    return false;
  }
  uint64_t taken() const { return taken_; }
  size_t states() const { return seen_.size(); }

 private:
  static constexpr int kOfRun = 8;
  static constexpr int kSteps = 2 * kOfRun + 7;

  static uint64_t hash(const Small& w) {
    uint64_t h = 1469598103934665603u;
    const auto add = [&h](uint64_t v) {
      h = (h ^ (v + 0x9e3779b97f4a7c15u + (h << 6))) * 1099511628211u;
    };
    const auto fleet = [&](const FleetState& f, const std::array<LeasedRegion, kRegions>& regions) {
      for (const int64_t v : {f.term, f.newest, f.newest_ms, int64_t{f.halted}, f.reported_term,
                              f.began, f.lasting, f.adopt_ms})
        add(static_cast<uint64_t>(v));
      for (const LeasedRegion& r : regions)
        for (const int64_t v : {r.floor_ms, r.until_ms, r.incarnation, r.grant, r.nonce,
                                int64_t{r.server}, static_cast<int64_t>(r.state)})
          add(static_cast<uint64_t>(v));
    };
    fleet(w.fleet, w.regions);
    fleet(w.old_fleet, w.old_regions);
    for (const int64_t v : {int64_t{w.moved}, int64_t{w.lost}, w.now, w.lease_server_off, w.drawn})
      add(static_cast<uint64_t>(v));
    for (const Run& r : w.runs) {
      for (const int64_t v : {r.incarnation, r.nonce, r.acked, r.term, r.newest, r.grant, r.floor,
                              r.until, r.highest, int64_t{r.region}, int64_t{r.giving_back},
                              int64_t{r.sent}, int64_t{r.answered}, r.sent_at})
        add(static_cast<uint64_t>(v));
      if (r.sent)
        for (const int64_t v : {static_cast<int64_t>(r.request.call), r.request.clock_ms,
                                r.request.newest, r.request.grant, r.request.highest_ms})
          add(static_cast<uint64_t>(v));
      if (r.answered)
        for (const int64_t v : {static_cast<int64_t>(r.answer.status), r.answer.number,
                                r.answer.until_ms, r.answer.floor_ms, int64_t{r.answer.region}})
          add(static_cast<uint64_t>(v));
    }
    for (const auto& region : w.minted)
      for (const uint64_t bits : region) add(bits);
    return h;
  }

  static void mint(Small& w) {
    for (size_t i = 0; i < w.runs.size(); ++i) {
      Run& r = w.runs[i];
      if (r.region == kNoRegion || w.now < r.floor || w.now >= r.until) continue;
      const uint64_t bit = uint64_t{1} << ((w.now - kBegin) / kUnit);
      auto& region = w.minted[static_cast<size_t>(r.region)];
      if ((region[1 - i] & bit) != 0) w.violated = true;
      region[i] |= bit;
      r.highest = std::max(r.highest, w.now + kUnit);
    }
  }

  LeaseRequest request_of(const Small& w, const Run& r) const {
    LeaseRequest q{};
    q.call = r.giving_back           ? LeaseCall::give_back
             : r.region == kNoRegion ? LeaseCall::acquire
                                     : LeaseCall::renew;
    q.incarnation = r.incarnation;
    q.term = r.term;
    q.newest = r.newest;
    q.nonce = r.nonce;
    q.acked = r.acked;
    q.clock_ms = w.now;
    q.length_ms = q.age_ms = 4 * kUnit;
    q.region = r.region;
    q.floor_ms = r.floor;
    q.until_ms = r.until;
    q.grant = r.grant;
    q.highest_ms = std::max<int64_t>(r.highest, 0);
    return q;
  }

  bool decide_one(Small& w, LeaseRequest q, LeaseAnswer& answer) const {
    if (w.moved && rules_.identity_checked) {
      halt_if_behind(w.fleet, q);
      return false;
    }
    const int64_t clock = w.now + w.lease_server_off;
    if (!rules_.floors_kept)
      for (LeasedRegion& region : w.regions) region.floor_ms = region.until_ms = 0;
    answer = decide(w.fleet, w.regions, kOwn, q, clock);
    w.lost = w.lost || w.moved;
    return true;
  }

  static void receive(Small& w, Run& r, const LeaseAnswer& answer, int64_t sent_at) {
    LeaseView mine{r.incarnation, r.term,  r.newest, r.giving_back ? kNoRegion : r.region,
                   r.grant,       r.floor, r.until,  r.highest};
    const auto know = [&] { r.term = answer.term, r.newest = answer.number; };
    const auto forget = [&] { r.region = kNoRegion, r.giving_back = false; };
    switch (read_answer(mine, r.giving_back, answer, sent_at, w.now, kUnit)) {
      case LeaseEvent::taken:
        know();
        r.region = answer.region;
        r.grant = answer.grant;
        r.floor = r.highest = answer.floor_ms;
        r.until = answer.until_ms;
        r.acked = r.nonce++;
        break;
      case LeaseEvent::extended:
        know();
        r.grant = answer.grant;
        r.until = std::max(r.until, answer.until_ms);
        r.acked = r.nonce++;
        break;
      case LeaseEvent::lost:
        forget();
        r.incarnation = ++w.drawn;
        know();
        break;
      case LeaseEvent::given_back:
        know();
        forget();
        break;
      case LeaseEvent::full:
      case LeaseEvent::ask_again:
        know();
        break;
      default:
        break;
    }
  }

  // Returns false if the step is impossible in the present state of the servers.
  bool act_run(Small& w, size_t i, int step) const {
    Run& r = w.runs[i];
    switch (step) {
      case 0:    // request with an immediate answer
      case 1:    // the answer is lost
      case 2: {  // the answer comes later
        if (step == 2 && r.answered) return false;
        LeaseAnswer answer{};
        if (!decide_one(w, request_of(w, r), answer)) return step == 0;
        if (step == 0) receive(w, r, answer, w.now);
        if (step == 2) r.answered = true, r.answer = answer, r.sent_at = w.now;
        return true;
      }
      case 3:  // the request is decided later
        if (r.sent) return false;
        r.sent = true;
        r.request = request_of(w, r);
        return true;
      case 4: {
        if (!r.sent) return false;
        r.sent = false;
        LeaseAnswer answer{};
        if (decide_one(w, r.request, answer)) receive(w, r, answer, r.request.clock_ms);
        return true;
      }
      case 5:
        if (!r.answered) return false;
        r.answered = false;
        receive(w, r, r.answer, r.sent_at);
        return true;
      case 6: {  // the server restarts
        r = Run{};
        r.incarnation = ++w.drawn;
        return true;
      }
      case 7:
        if (r.region == kNoRegion || r.giving_back) return false;
        r.giving_back = true;
        r.until = 0;  // mints no more ids
        return true;
      default:
        return false;
    }
  }

  bool act(Small& w, int step) const {
    if (step < kOfRun) return act_run(w, 0, step);
    if (step < 2 * kOfRun) return act_run(w, 1, step - kOfRun);
    switch (step - 2 * kOfRun) {
      case 0:
        w.now += kUnit;
        return w.now < kBegin + 60 * kUnit;
      case 1:
        w.now += 4 * kUnit;
        return w.now < kBegin + 60 * kUnit;
      case 2:  // the lease server's clock steps
        w.lease_server_off = w.lease_server_off == 0 ? 6 * kUnit : 0;
        return true;
      case 3:
        w.old_fleet = w.fleet;
        w.old_regions = w.regions;
        return true;
      case 4:  // lease server restored, and halted
        if (w.old_fleet.term == 0 || w.moved) return false;
        w.lost = w.old_fleet.newest != w.fleet.newest || w.old_fleet.term != w.fleet.term;
        w.fleet = w.old_fleet;
        w.regions = w.old_regions;
        w.moved = true;
        return true;
      case 5: {  // an operator confirms the recovery
        if (!w.moved && !w.fleet.halted) return false;
        if (w.lease_server_off != 0) return false;
        if (!w.lost && !w.fleet.halted) {
          confirm_no_data_loss(w.fleet, w.now, ++w.drawn);
        } else {
          confirm_data_loss(w.fleet, w.regions, w.now, ++w.drawn, w.moved);
        }
        w.moved = w.lost = false;
        return true;
      }
      default:
        revoke(w.regions[0]);
        return true;
    }
  }

  SmallRules rules_;
  std::unordered_map<uint64_t, int> seen_;
  uint64_t taken_ = 0;
};

Small beginning() {
  Small world;
  world.fleet.term = world.fleet.lasting = term_at(kBegin, 7);
  world.fleet.longest_ms = 4 * kUnit;
  world.fleet.skew_ms = kUnit;
  world.runs[0].incarnation = 1;
  world.runs[1].incarnation = 2;
  return world;
}

int depth() {
  const char* text = std::getenv("SNOWFLAKE_LEASE_DEPTH");
  return text != nullptr ? std::atoi(text) : (kEffort > 1 ? 6 : 5);
}

TEST(LeaseSmall, NoOrderOfStepsBreaksAPromise) {
  Explorer explorer{SmallRules{}};
  EXPECT_FALSE(explorer.search(beginning(), depth()));
  std::printf("%d steps deep: %zu states, %" PRIu64 " steps\n", depth(), explorer.states(),
              explorer.taken());
}

// If the rule identity_checked or the rule floors_kept is turned off, the search must find an order
// of steps that causes duplicate ids.
TEST(LeaseSmall, ItsRulesAreNeeded) {
  EXPECT_TRUE(Explorer(SmallRules{.identity_checked = false}).search(beginning(), 4));
  EXPECT_TRUE(Explorer(SmallRules{.floors_kept = false}).search(beginning(), 4));
}

}  // namespace
}  // namespace snowflake
