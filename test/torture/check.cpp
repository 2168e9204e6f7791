// Checks all ids of all clients over all server lives together.
//
//   check MANIFEST LOG...
//
// History branches: a restored backup goes on from a point in the past, and what was minted after
// that point is unknown to it. So ids belong to *lines*: a line begins at a fork of its parent and
// shares what came before. Along each line, with all it inherits, must hold:
//
//   duplicates   no id was returned twice
//   order        an id is greater than every id of its shard whose answer had arrived before it was
//                asked for, whichever sessions, crashes and failovers lie between
// and for each answer:
//   session      the ids of a shard that a session receives go strictly up
//   shard        the id decodes to the shard that was asked for, and to the region of the servers
//   time         it lies between the server's clock when it was minted and max_lead ahead of that
// and of a database whose neighbour, another one of the server, is tampered with:
//   neighbour    no call was refused, and none took longer than half a second
//
// The manifest, written by the driver as it goes:
//   layout TIME_BITS REGION_BITS SHARD_BITS SEQUENCE_BITS TICK_MS EPOCH_MS LEAD_MS REGION
//   line N PARENT FORK_NS plain|committed     PARENT 0: none. committed: inherits also what was
//                                             acknowledged as committed after the fork
//   apart FROM_NS TO_NS LINE                  meanwhile the neighbour of this line is tampered with
//   step NS                                   somebody changed a clock

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "record.hpp"

namespace torture {

namespace {

struct Request {
  uint32_t line;
  uint32_t client;
  uint32_t session;
  uint32_t transaction;
  int32_t shard;
  uint32_t count;
  size_t first;  // in `ids`
  int64_t sent, received;
  int64_t clock_low, clock_high;
  bool committed = false;
};

struct Line {
  uint32_t parent = 0;
  int64_t fork = 0;
  bool inherits_committed = false;
};

struct Refusal {
  uint32_t line;
  uint32_t client;
  int32_t shard;
  int64_t sent, received;
  std::string state;
};

// While something happened to the neighbour of a line.
struct Apart {
  int64_t from, to;
  uint32_t line;
};
constexpr int64_t kDelayedNs = 500'000'000;

// Written anew from the id's definition: the product's own header would agree with itself.
struct Format {
  unsigned time = 0, region = 0, shard = 0, sequence = 0;
  int64_t tick = 1, epoch = 0, lead = 0, of_region = 0;
  int64_t shard_of(int64_t id) const { return (id >> sequence) & ((int64_t{1} << shard) - 1); }
  int64_t region_of(int64_t id) const {
    return (id >> (shard + sequence)) & ((int64_t{1} << region) - 1);
  }
  int64_t tick_of(int64_t id) const { return id >> (region + shard + sequence); }
  int64_t tick_at(int64_t us) const {
    const int64_t since = us / 1000 - epoch;
    return since / tick;
  }
};

Format format;
std::map<uint32_t, Line> lines;
std::vector<Apart> aparts;
std::vector<int64_t> steps;
std::vector<Request> requests;
std::vector<Refusal> refusals;
std::vector<int64_t> ids;
std::vector<std::string> clients;
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

// One promise over one body of ids: counts what breaks it and shows the first few.
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

void read_manifest(const char* path) {
  std::ifstream in(path);
  std::string text;
  while (std::getline(in, text)) {
    std::istringstream words(text);
    std::string kind;
    words >> kind;
    if (kind == "layout") {
      words >> format.time >> format.region >> format.shard >> format.sequence >> format.tick >>
          format.epoch >> format.lead >> format.of_region;
    } else if (kind == "line") {
      uint32_t number = 0;
      std::string mode;
      Line line;
      words >> number >> line.parent >> line.fork >> mode;
      line.inherits_committed = mode == "committed";
      lines[number] = line;
    } else if (kind == "apart") {
      Apart apart{};
      words >> apart.from >> apart.to >> apart.line;
      aparts.push_back(apart);
    } else if (kind == "step") {
      int64_t at = 0;
      words >> at;
      steps.push_back(at);
    } else if (!kind.empty() && kind[0] != '#') {
      std::cerr << "manifest: " << text << "\n";
      std::exit(2);
    }
    if (words.fail()) {
      std::cerr << "manifest: " << text << "\n";
      std::exit(2);
    }
  }
  if (format.sequence == 0 && format.time == 0) {
    std::cerr << "the manifest names no layout\n";
    std::exit(2);
  }
  std::sort(steps.begin(), steps.end());
}

void read_log(const char* path) {
  FILE* f = std::fopen(path, "rb");
  if (f == nullptr) {
    std::perror(path);
    std::exit(2);
  }
  const auto client = static_cast<uint32_t>(clients.size());
  clients.emplace_back(path);
  clients.back().erase(0, clients.back().rfind('/') + 1);
  std::map<std::pair<uint32_t, uint32_t>, std::vector<size_t>> transactions;
  Record r;
  while (std::fread(&r, sizeof r, 1, f) == 1) {
    if (r.magic != kMagic || !lines.contains(r.line)) {
      std::cerr << path << " is damaged, or of a line that the manifest does not know\n";
      std::exit(2);
    }
    const auto transaction = std::make_pair(r.session, r.transaction);
    if (r.kind == kCommitted) {
      for (const size_t i : transactions[transaction]) requests[i].committed = true;
      continue;
    }
    if (r.kind == kRefused) {
      refusals.push_back(
          {r.line, client, r.shard, r.sent_ns, r.received_ns, unpack_state(r.state)});
      continue;
    }
    const size_t first = ids.size();
    ids.resize(first + r.count);
    // A client that was killed leaves half a record; what it holds was returned all the same.
    const size_t got = std::fread(&ids[first], sizeof ids[0], r.count, f);
    ids.resize(first + got);
    if (got == 0) break;
    if (r.transaction != 0) transactions[transaction].push_back(requests.size());
    requests.push_back({r.line, client, r.session, r.transaction, r.shard,
                        static_cast<uint32_t>(got), first, r.sent_ns, r.received_ns, r.clock_low_us,
                        r.clock_high_us});
  }
  std::fclose(f);
}

void check_answers() {
  Verdict shard("shard"), session("session order"), time("time");
  std::map<std::tuple<uint32_t, uint32_t, int32_t>, int64_t> last;
  uint64_t timed = 0;
  for (const Request& r : requests) {
    int64_t& previous = last[{r.client, r.session, r.shard}];
    // Two steps within one call hide what the clock was in between.
    const auto in_call = std::upper_bound(steps.begin(), steps.end(), r.received) -
                         std::lower_bound(steps.begin(), steps.end(), r.sent);
    const bool clocked = r.clock_low != 0 && in_call <= 1;
    const int64_t low = format.tick_at(r.clock_low);
    const int64_t high = format.tick_at(r.clock_high) + format.lead / format.tick;
    for (size_t i = r.first; i < r.first + r.count; ++i) {
      const int64_t id = ids[i];
      if (id <= 0 || format.shard_of(id) != r.shard) shard.broken(id, r, "is of another shard");
      if (format.region_of(id) != format.of_region) shard.broken(id, r, "is of another region");
      if (id <= previous) session.broken(id, r, "follows " + std::to_string(previous));
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

// What a line has minted or inherited.
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

void find_duplicates(const std::vector<uint32_t>& members, Verdict& verdict) {
  struct Entry {
    int64_t id;
    uint32_t request;
  };
  std::vector<Entry> entries;
  size_t total = 0;
  for (const uint32_t r : members) total += requests[r].count;
  entries.reserve(total);
  for (const uint32_t r : members)
    for (size_t i = 0; i < requests[r].count; ++i)
      entries.push_back({ids[requests[r].first + i], r});
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.id < b.id; });
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i].id == entries[i - 1].id)
      verdict.broken(entries[i].id, requests[entries[i].request],
                     "was also returned to\n#     " + describe(requests[entries[i - 1].request]) +
                         "\n#   and to");
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
      if (id > g.id) g = {id, by_received[arrived]};
    }
    const Greatest& g = greatest[request.shard];
    const int64_t id = *std::min_element(&ids[request.first], &ids[request.first] + request.count);
    if (id <= g.id)
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
    Verdict duplicates("no duplicate");
    find_duplicates(members, duplicates);
    duplicates.give(over);
    Verdict order("only upwards");
    find_disorder(members, order);
    order.give(over);
  }
}

// A call that was still without an answer in the end has taken at least until then.
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
      // What the server says it took: the client itself may have been kept off the processor.
      const int64_t received = r.clock_low == 0 || r.received > apart.to
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
  check_neighbours();
  std::printf("# %zu ids, %d passed, %d failed\n", ids.size(), passed, failed);
  return failed == 0 ? 0 : 1;
}
