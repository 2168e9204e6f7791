// Checks all ids that clients received in all server runs: check MANIFEST LOG...
//
// A restored backup continues from a time in the past, so the history of ids has branches, called
// lines. A line (branch) separates from its parent line at a time that is called the fork. A line
// also contains all ids that clients of its parent line received before the fork. The ids in each
// branch of the history must follow these rules:
//
//  - duplicates: No id was returned twice.
//
//  - order: If a client requests an id after another id of the shard was received, the requested id
//    is greater. The rule "order" also applies to ids of different sessions, and to ids before and
//    after a crash or failover.
//
// If servers lease their regions, all ids of the run must follow three more rules: fleet, holders
// and observed. The ids may also come from copied servers, or from transactions that a failover or
// restore has lost:
//
//  - fleet: No id was returned twice, even by different servers.
//
//  - holders: All ids with the same region and tick (time unit) come from one history branch
//    (line). Only one server at a time leases a region.
//
//  - observed: Every id that a database mints after observe(id) was called in this database is
//   greater than the observed id.
//
// If servers lease their regions, the check of the order of ids compares only their times and
// sequence numbers. The rule "order" ignores the region of an id, because a server may mint ids of
// a shard in a new region after a restart. The ids that one call has returned must follow these
// rules:
//
//  - session: Within a session, each id of a shard is greater than the previous id of the shard.
//
//  - shard: The id decodes to the requested shard and to the region of the server. A leased region
//    is not the static region of another server.
//
//  - time: The time of an id is at least the server's clock when the id is minted, and at most the
//    clock plus max_lead.
//
// A fault or change in one database must not affect another database of the same server:
//
//  - neighbour: In the unchanged database (the neighbour), no call failed, and no call took longer
//    than half a second.
//
// The torture program writes these lines to the manifest during the run:
//
//  - "layout TIME_BITS REGION_BITS SHARD_BITS SEQUENCE_BITS TICK_MS EPOCH_MS LEAD_MS REGION": The
//    layout of the ids. REGION is -1 if servers lease their regions.
//
//  - "line N PARENT FORK_NS plain|committed": The branch N of the history separated from the branch
//    PARENT at the time FORK_NS. If PARENT is 0, the branch N has no parent. With "plain", the
//    branch N inherits only the ids that clients of the branch PARENT received before FORK_NS. With
//    "committed", the branch N also inherits ids that clients of the branch PARENT received later
//    in committed transactions.
//
//  - "apart FROM_NS TO_NS LINE": From FROM_NS to TO_NS, the test made a fault or change in one
//    database of a server. The history branch LINE belongs to the neighbour, another database of
//    the same server.
//
//  - "static LINE REGION": The ids of the history branch LINE come from a server whose
//    configuration sets the region REGION. Other servers leased their regions.
//
//  - "observed LINE NS ID": The call observe(ID) returned at the time NS.
//
//  - "step FROM_NS TO_NS": Between FROM_NS and TO_NS, the test changed the clock of a server.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "history.hpp"

namespace torture {

namespace {

constexpr int64_t kDelayedNs = 500'000'000;

int passed = 0;
int failed = 0;

std::string describe(const Request& r) {
  char text[300];
  std::snprintf(text, sizeof text,
                "%s session %u shard %d line %u sent %.3f received %.3f clock %.3f..%.3f%s",
                clients[r.client].c_str(), r.session, r.shard, r.line,
                1e-9 * static_cast<double>(r.sent), 1e-9 * static_cast<double>(r.received),
                1e-6 * static_cast<double>(r.clock_low), 1e-6 * static_cast<double>(r.clock_high),
                r.committed ? " committed" : "");
  return text;
}

// Counts the violations of one rule, and prints the first violations.
class Verdict {
 public:
  explicit Verdict(std::string name) : name_(std::move(name)) {}
  void broken(int64_t id, const Request& by, const std::string& how) {
    broken("id " + std::to_string(id) + " (tick " + std::to_string(format.tick_of(id)) + ") " +
           how + "\n#     " + describe(by));
  }
  void broken(const std::string& how) {
    if (broken_++ < 5) shown_ += "#   " + how + "\n";
  }
  void give(const std::string& over) {
    (broken_ == 0 ? passed : failed) += 1;
    std::cout << (broken_ == 0 ? "ok - " : "not ok - ") << name_ << ": " << over;
    if (broken_ != 0) std::cout << ", broken " << broken_ << " times";
    std::cout << "\n" << shown_;
  }

 private:
  std::string name_, shown_;
  uint64_t broken_ = 0;
};

// If the server's configuration sets a region, its ids must have this region. If the server leases
// its region, its ids must not have the fixed region of another server.
bool of_right_region(const Request& r, int64_t id) {
  const int64_t region = format.region_of(id);
  if (!format.leased()) return region == format.of_region;
  const int64_t own = lines.at(r.line).region;
  if (own >= 0) return region == own;
  for (const auto& [number, line] : lines)
    if (line.region == region) return false;
  return true;
}

std::pair<std::vector<Step>::const_iterator, std::vector<Step>::const_iterator> steps_between(
    int64_t from, int64_t to) {
  const auto first = std::partition_point(steps.cbegin(), steps.cend(),
                                          [&](const Step& s) { return s.to < from; });
  return {first,
          std::partition_point(first, steps.cend(), [&](const Step& s) { return s.from <= to; })};
}

void check_answers() {
  Verdict shard("shard"), session("session order"), time("time");
  std::map<std::tuple<uint32_t, uint32_t, int32_t>, int64_t> last;
  uint64_t timed = 0;
  for (const Request& r : requests) {
    int64_t& previous = last[{r.client, r.session, r.shard}];
    // The check of the ids' times skips calls during or shortly after a step of any clock in the
    // run. A server uses a clock reading for up to 50 us, so an id may have a time from before the
    // clock step.
    constexpr int64_t kMomentNs = 10'000'000;
    const auto [step, beyond] = steps_between(r.sent - kMomentNs, r.received);
    const bool clocked = r.clock_low != 0 && step == beyond;
    const int64_t low = format.tick_at(r.clock_low);
    const int64_t high = format.tick_at(r.clock_high) + format.lead / format.tick;
    for (size_t i = r.first; i < r.first + r.count; ++i) {
      const int64_t id = ids[i];
      if (id <= 0 || format.shard_of(id) != r.shard) shard.broken(id, r, "is of another shard");
      if (!of_right_region(r, id)) shard.broken(id, r, "is of another region");
      if (previous != 0 && format.rank(id) <= format.rank(previous))
        session.broken(id, r, "follows " + std::to_string(previous));
      previous = id;
      if (!clocked) continue;
      ++timed;
      if (format.tick_of(id) < low) time.broken(id, r, "is behind the clock");
      if (format.tick_of(id) > high) time.broken(id, r, "is further ahead than max_lead");
    }
  }
  const std::string all = std::to_string(ids.size()) + " ids";
  shard.give(all);
  session.give(all + " in " + std::to_string(last.size()) + " sequences");
  time.give(std::to_string(timed) + " of " + all);
}

bool inherits(const Line& line, const Request& r) {
  return r.received < line.fork || (line.inherits_committed && r.committed);
}

std::vector<uint32_t> history(uint32_t number,
                              const std::unordered_map<uint32_t, std::vector<uint32_t>>& own) {
  std::vector<uint32_t> all;
  if (const auto found = own.find(number); found != own.end()) all = found->second;
  const Line& line = lines.at(number);
  if (line.parent != 0)
    for (const uint32_t i : history(line.parent, own))
      if (inherits(line, requests[i])) all.push_back(i);
  return all;
}

struct Entry {
  int64_t id;
  uint32_t request;
};

std::vector<Entry> sorted_ids(const std::vector<uint32_t>& members) {
  std::vector<Entry> entries;
  size_t total = 0;
  for (const uint32_t r : members) total += requests[r].count;
  entries.reserve(total);
  for (const uint32_t r : members)
    for (size_t i = 0; i < requests[r].count; ++i)
      entries.push_back({ids[requests[r].first + i], r});
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.id < b.id; });
  return entries;
}

uint64_t find_duplicates(const std::vector<Entry>& entries, Verdict& verdict) {
  uint64_t found = 0;
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].id != entries[i - 1].id) continue;
    ++found;
    verdict.broken(entries[i].id, requests[entries[i].request],
                   "was also returned to\n#     " + describe(requests[entries[i - 1].request]) +
                       "\n#   and to");
  }
  return found;
}

void find_disorder(const std::vector<uint32_t>& members, Verdict& verdict) {
  auto by_sent = members;
  auto by_received = members;
  std::sort(by_sent.begin(), by_sent.end(),
            [](uint32_t a, uint32_t b) { return requests[a].sent < requests[b].sent; });
  std::sort(by_received.begin(), by_received.end(),
            [](uint32_t a, uint32_t b) { return requests[a].received < requests[b].received; });
  struct Greatest {
    int64_t id = 0;
    uint32_t request = 0;
  };
  std::unordered_map<int32_t, Greatest> greatest;
  size_t arrived = 0;
  for (const uint32_t b : by_sent) {
    const Request& request = requests[b];
    for (; arrived < by_received.size() && requests[by_received[arrived]].received < request.sent;
         ++arrived) {
      const Request& before = requests[by_received[arrived]];
      Greatest& g = greatest[before.shard];
      const int64_t id = *std::max_element(&ids[before.first], &ids[before.first] + before.count);
      if (format.rank(id) > format.rank(g.id)) g = {id, by_received[arrived]};
    }
    const Greatest& g = greatest[request.shard];
    const int64_t id = *std::min_element(&ids[request.first], &ids[request.first] + request.count);
    if (g.id != 0 && format.rank(id) <= format.rank(g.id))
      verdict.broken(id, request,
                     "is not above " + std::to_string(g.id) + ", which had arrived at\n#     " +
                         describe(requests[g.request]) + "\n#   when it was asked for by");
  }
}

void check_lines() {
  std::unordered_map<uint32_t, std::vector<uint32_t>> own;
  for (uint32_t i = 0; i < requests.size(); ++i) own[requests[i].line].push_back(i);
  for (const auto& [number, line] : lines) {
    const auto members = history(number, own);
    size_t total = 0;
    for (const uint32_t r : members) total += requests[r].count;
    const std::string over =
        "line " + std::to_string(number) + ", " + std::to_string(total) + " ids";
    if (!format.leased()) {
      Verdict duplicates("no duplicate");
      find_duplicates(sorted_ids(members), duplicates);
      duplicates.give(over);
    }
    Verdict order("only upwards");
    find_disorder(members, order);
    order.give(over);
  }
}

void check_fleet() {
  std::vector<uint32_t> all(requests.size());
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto entries = sorted_ids(all);
  const std::string over = std::to_string(entries.size()) + " ids of all servers";
  Verdict duplicates("fleet: no duplicate"), holders("holders"), observed("observed");
  const uint64_t found = find_duplicates(entries, duplicates);
  duplicates.give(over);
  for (size_t i = 1; i < entries.size(); ++i) {
    const unsigned below = format.shard + format.sequence;
    const Request &a = requests[entries[i - 1].request], &b = requests[entries[i].request];
    if (entries[i].id >> below == entries[i - 1].id >> below && a.line != b.line)
      holders.broken(entries[i].id, b,
                     "has region and tick of one of\n#     " + describe(a) + "\n#   and is of");
  }
  holders.give(over);
  for (const Request& r : requests)
    for (const Observation& o : observations)
      if (o.line == r.line && r.sent > o.at)
        for (size_t i = r.first; i < r.first + r.count; ++i)
          if (ids[i] <= o.id) observed.broken(ids[i], r, "is not above " + std::to_string(o.id));
  if (!observations.empty()) observed.give(std::to_string(observations.size()) + " times");
  std::printf("# fleet: %zu ids, %llu duplicates\n", entries.size(),
              static_cast<unsigned long long>(found));
}

// Assumes that a call without a result has lasted at least until the end of the run.
bool delayed(const Apart& apart, int64_t sent, int64_t received) {
  return std::min(received, apart.to) - sent > kDelayedNs;
}

void check_neighbours() {
  Verdict verdict("neighbour");
  size_t calls = 0;
  for (const Apart& apart : aparts) {
    const auto within = [&](const auto& call) {
      return call.line == apart.line && call.sent >= apart.from && call.sent < apart.to;
    };
    size_t answered = 0;
    for (const Request& r : requests) {
      if (!within(r)) continue;
      ++answered;
      // Measures the duration of a call by the server's clock, if this clock was not stepped. A
      // duration by the client's clock would include times in which the client process did not run.
      const auto [step, beyond] = steps_between(r.sent, r.received);
      const int64_t received = r.clock_low == 0 || step != beyond
                                   ? r.received
                                   : r.sent + 1000 * (r.clock_high - r.clock_low);
      if (delayed(apart, r.sent, received)) verdict.broken(ids[r.first], r, "was kept waiting");
    }
    for (const Refusal& r : refusals) {
      if (!within(r) || (r.received > apart.to && !delayed(apart, r.sent, r.received))) continue;
      verdict.broken("shard " + std::to_string(r.shard) + " was refused to " + clients[r.client] +
                     ", SQLSTATE " + r.state);
    }
    if (answered == 0) verdict.broken("no call at all from " + std::to_string(apart.from));
    calls += answered;
  }
  if (!aparts.empty())
    verdict.give(std::to_string(calls) + " calls while something happened next door, " +
                 std::to_string(aparts.size()) + " times");
}

}  // namespace

}  // namespace torture

int main(int argc, char** argv) {
  using namespace torture;
  if (argc < 3) return std::fprintf(stderr, "usage: check MANIFEST LOG...\n"), 2;
  read_manifest(argv[1]);
  for (int i = 2; i < argc; ++i) read_log(argv[i]);
  if (ids.empty()) return std::fprintf(stderr, "the logs hold no ids\n"), 2;
  check_answers();
  check_lines();
  if (format.leased()) check_fleet();
  check_neighbours();
  std::printf("# %zu ids, %d passed, %d failed\n", ids.size(), passed, failed);
  return failed == 0 ? 0 : 1;
}
