#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "record.hpp"

namespace torture {

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
  int64_t region = -1;  // static region, or -1
};

// An id that observe() accepted. Every id of the same history branch (line) that is minted after
// the call of observe() must be greater than the accepted id.
struct Observation {
  uint32_t line;
  int64_t at;
  int64_t id;
};

struct Refusal {
  uint32_t line;
  uint32_t client;
  int32_t shard;
  int64_t sent, received;
  std::string state;
};

struct Apart {
  int64_t from, to;
  uint32_t line;
};

// Implements the layout of ids a second time, from its definition. A check that used the
// extension's own decoder could not detect an error of the decoder.
struct Format {
  unsigned time = 0, region = 0, shard = 0, sequence = 0;
  int64_t tick = 1, epoch = 0, lead = 0, of_region = 0;
  int64_t shard_of(int64_t id) const { return (id >> sequence) & ((int64_t{1} << shard) - 1); }
  int64_t region_of(int64_t id) const {
    return (id >> (shard + sequence)) & ((int64_t{1} << region) - 1);
  }
  int64_t tick_of(int64_t id) const { return id >> (region + shard + sequence); }
  bool leased() const { return of_region < 0; }
  // Returns a number that must ascend in a shard. If servers lease their regions, the number
  // consists of the time and the sequence number of the id. Otherwise, the number is the whole id.
  int64_t rank(int64_t id) const {
    return leased() ? tick_of(id) << sequence | (id & ((int64_t{1} << sequence) - 1)) : id;
  }
  int64_t tick_at(int64_t us) const {
    const int64_t since = us / 1000 - epoch;
    return since / tick;
  }
};

// Records that a clock was changed at some moment between `from` and `to`. Two clock steps never
// overlap, because one program makes all steps.
struct Step {
  int64_t from;
  int64_t to;
};

inline Format format;
inline std::map<uint32_t, Line> lines;
inline std::vector<Apart> aparts;
inline std::vector<Observation> observations;
inline std::vector<Step> steps;
inline std::vector<Request> requests;
inline std::vector<Refusal> refusals;
inline std::vector<int64_t> ids;
inline std::vector<std::string> clients;

inline void read_manifest(const char* path) {
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
    } else if (kind == "static") {
      uint32_t number = 0;
      words >> number;
      words >> lines[number].region;
    } else if (kind == "observed") {
      Observation o{};
      words >> o.line >> o.at >> o.id;
      observations.push_back(o);
    } else if (kind == "step") {
      Step step{};
      words >> step.from >> step.to;
      steps.push_back(step);
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
}

inline void read_log(const char* path) {
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
    // If a client was killed while it wrote a record, the log ends with an incomplete record. The
    // ids in an incomplete record count as ids that the client received.
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

}  // namespace torture
