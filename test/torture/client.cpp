// Mints ids with every minting function, and writes the returned ids to the file FILE before the
// next call.
//
//   client conninfo=... log=FILE line=N seed=N shards=HOT,COLD,N.. [rate=BYTES/S] [only=WAY,WAY]
//   [max_wait=MS]
//
// HOT is the busiest shard of the run, which the table app.hot uses. COLD is the shard of the table
// app.cold. All clients of a run use the shards HOT and COLD.
//
// Runs until SIGTERM. During faults, errors are expected and only counted. Internal errors, unique
// violations and a server that does not respond are never expected. The client writes unexpected
// errors to FILE.violations, and the run fails.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "connection.hpp"
#include "journal.hpp"

namespace torture {

namespace {

struct Options {
  std::string conninfo, log, only;
  std::vector<int> shards;
  uint32_t line = 0;
  uint64_t seed = 1;
  double rate = 1e6;
  int max_wait = -1;  // ms; -1: random
};

class Client {
 public:
  explicit Client(Options options)
      : options_(std::move(options)),
        random_(options_.seed),
        connection_(options_.conninfo),
        journal_(options_.log, options_.line) {
    begun_ns_ = monotonic_ns();
  }

  void run() {
    while (!stopping) {
      if (!connection_.is_open() && !connect()) {
        usleep(20'000);
        continue;
      }
      step();
      pace();
    }
    report();
  }

 private:
  struct Way {
    const char* name;
    void (Client::*run)();
    unsigned weight;
  };

  uint64_t below(uint64_t n) { return random_() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }
  int some_shard() { return options_.shards[chance(50) ? 0 : below(options_.shards.size())]; }

  bool patient() const { return options_.max_wait < 0; }

  // Returns a number that identifies this client in the run. The number is not a process id,
  // because process ids repeat in a long run.
  int number() const { return static_cast<int>(options_.seed % 1'000'000'000); }

  bool connect() {
    const int64_t sent = monotonic_ns();
    if (!connection_.open()) {
      refused(options_.shards[0], sent, "08001");
      return false;
    }
    ++session_;
    transaction_ = 0;
    prepared_ = false;
    // Changes settings that an ordinary user may change. No value of a setting that an ordinary
    // user may change may cause a duplicate id.
    static constexpr int kWaits[] = {0, 20, 500, 2000, 5000};
    char text[200];
    std::snprintf(text, sizeof text,
                  "SELECT set_config('snowflake.max_wait', '%d', false), "
                  "set_config('snowflake.default_shard', '%d', false), "
                  "set_config('statement_timeout', '%d', false)",
                  patient() ? kWaits[below(5)] : options_.max_wait, options_.shards[0],
                  patient() && chance(20) ? 300 : 15000);
    return connection_.run(text);
  }

  // Runs a query that returns the clock before the id, the id, and the clock after the id. The two
  // readings of the server's clock show when the id was minted. The client records a long result in
  // pieces, because the server may die while it sends the result.
  bool mint(const char* text, const std::vector<Parameter>& parameters, int shard,
            bool prepared = false, double cost = 1) {
    journal_.begin(session_, transaction_, shard);
    const int64_t sent = monotonic_ns();
    const bool good = connection_.run(
        text, parameters,
        [&](PGresult* row) {
          journal_.see_clock(PQgetvalue(row, 0, 0), PQgetvalue(row, 0, 2));
          last_ = {big_endian<int64_t>(PQgetvalue(row, 0, 1)), shard};
          journal_.take(last_.first);
          if (journal_.pending() < 200) return;
          journal_.end(cost);
          journal_.begin(session_, transaction_, shard, sent);
        },
        prepared);
    journal_.end(cost);
    if (!good) refused(shard, sent, connection_.is_open() ? connection_.state() : "08006");
    return good;
  }

  // If the option max_wait is set, writes a failed call to the log. Without max_wait, a client only
  // counts failed calls.
  void refused(int shard, int64_t sent, const std::string& state) {
    if (!patient()) journal_.refused(session_, shard, sent, state);
  }

  void single() {
    const int shard = some_shard();
    if (shard == options_.shards[0] && chance(30))
      mint("SELECT clock_timestamp(), snowflake.next_id(), clock_timestamp()", {}, shard);
    else
      mint("SELECT clock_timestamp(), snowflake.next_id($1::int), clock_timestamp()", {shard},
           shard);
  }

  void after() {
    const auto [id, of_shard] = last_;
    if (id == 0) return single();
    const bool near = chance(30);
    const int shard = near ? of_shard : some_shard();
    if (near)
      mint("SELECT clock_timestamp(), snowflake.next_id_near($1::bigint), clock_timestamp()", {id},
           shard);
    else
      mint("SELECT clock_timestamp(), snowflake.next_id($1::int, $2::bigint), clock_timestamp()",
           {shard, id}, shard);
    if (!near && last_.first != id && last_.first < id)
      connection_.complain("not after", std::to_string(last_.first).c_str());
  }

  void prepared() {
    if (!prepared_) {
      PGresult* result = PQprepare(
          connection_.raw(), "mint",
          "SELECT clock_timestamp(), snowflake.next_id($1), clock_timestamp()", 0, nullptr);
      prepared_ = PQresultStatus(result) == PGRES_COMMAND_OK;
      PQclear(result);
      if (!prepared_) return;
    }
    const int shard = some_shard();
    for (int i = 0; i < 20 && connection_.is_open(); ++i) mint("mint", {shard}, shard, true);
  }

  void batch() {
    const int shard = some_shard();
    const auto count = static_cast<long long>(chance(10) ? 1 + below(30000) : 1 + below(2000));
    journal_.begin(session_, transaction_, shard);
    connection_.run(
        "SELECT clock_timestamp(), snowflake.next_ids($1::int, $2::int), clock_timestamp()",
        {shard, count}, [&](PGresult* row) {
          journal_.see_clock(PQgetvalue(row, 0, 0), PQgetvalue(row, 0, 2));
          // In PostgreSQL's binary form, an array has dimensions, nulls, type, length and lower
          // bound, and then length and value of each element.
          const char* array = PQgetvalue(row, 0, 1);
          const auto length = big_endian<int32_t>(array + 12);
          const char* value = array + 20 + 4;
          for (int32_t i = 0; i < length; ++i, value += 12)
            journal_.take(big_endian<int64_t>(value));
        });
    journal_.end();
  }

  void stream() {
    const int shard = some_shard();
    mint(
        "SELECT clock_timestamp(), snowflake.next_id($1::int), clock_timestamp() "
        "FROM generate_series(1, $2::int)",
        {shard, static_cast<long long>(1 + below(3000))}, shard);
  }

  // Inserts into a table whose default mints ids, in transactions that end in different ways. If a
  // transaction is rolled back, its ids are still recorded in the journal, because the server has
  // minted the ids.
  void insert() {
    ++transaction_;
    const bool hot = chance(60);
    const int shard = options_.shards[hot ? 0 : 1];
    const char* text = hot ? "INSERT INTO app.hot (client, n) SELECT $1::int, g FROM "
                             "generate_series(1, $2::int) g "
                             "RETURNING before, id, after"
                           : "INSERT INTO app.cold (client, n) SELECT $1::int, g FROM "
                             "generate_series(1, $2::int) g "
                             "RETURNING before, id, after";
    if (!connection_.run("BEGIN")) return;
    bool good = true;
    for (uint64_t i = 0, n = 1 + below(3); i < n && good; ++i) {
      const bool savepoint = chance(30);
      if (savepoint) connection_.run("SAVEPOINT s");
      good = mint(text, {number(), static_cast<long long>(1 + below(20))}, shard, false, 40);
      if (savepoint && chance(50)) good = connection_.run("ROLLBACK TO s");
    }
    finish_transaction(good);
  }

  void copy() {
    ++transaction_;
    const bool hot = chance(60);
    const int shard = options_.shards[hot ? 0 : 1];
    std::string lines;
    const uint64_t rows = 1 + below(200);
    const int64_t tag = ++copies_;
    for (uint64_t n = 0; n < rows; ++n)
      lines +=
          std::to_string(number()) + "\t" + std::to_string(n) + "\t" + std::to_string(tag) + "\n";
    if (!connection_.run("BEGIN")) return;
    journal_.begin(session_, transaction_, shard);
    const int64_t sent = monotonic_ns();
    bool good = connection_.copy(hot ? "COPY app.hot (client, n, copy) FROM STDIN"
                                     : "COPY app.cold (client, n, copy) FROM STDIN",
                                 lines);
    if (good) {
      journal_.begin(session_, transaction_, shard, sent);
      good = connection_.run(hot ? "SELECT before, id, after FROM app.hot WHERE client = $1::int "
                                   "AND copy = $2::bigint "
                                   "ORDER BY n"
                                 : "SELECT before, id, after FROM app.cold WHERE client = $1::int "
                                   "AND copy = $2::bigint "
                                   "ORDER BY n",
                             {number(), tag}, [&](PGresult* row) {
                               journal_.see_clock(PQgetvalue(row, 0, 0), PQgetvalue(row, 0, 2));
                               journal_.take(big_endian<int64_t>(PQgetvalue(row, 0, 1)));
                             });
      journal_.end(40);
    }
    finish_transaction(good);
  }

  void block() {
    const int shard = some_shard();
    mint("SELECT before, id, after FROM app.block($1::int, $2::int)",
         {shard, static_cast<long long>(1 + below(20))}, shard);
  }

  void finish_transaction(bool good) {
    if (!connection_.is_open()) return;
    if (!good || chance(20)) {
      connection_.run("ROLLBACK");
    } else if (chance(5)) {
      connection_.close();  // the transaction never ends
    } else if (connection_.run("COMMIT") && !connection_.warned()) {
      journal_.committed(session_, transaction_);
    }
  }

  void step() {
    static constexpr Way kWays[] = {
        {"single", &Client::single, 8}, {"prepared", &Client::prepared, 3},
        {"batch", &Client::batch, 3},   {"stream", &Client::stream, 2},
        {"insert", &Client::insert, 4}, {"copy", &Client::copy, 2},
        {"block", &Client::block, 1},   {"after", &Client::after, 2},
    };
    unsigned total = 0;
    for (const Way& way : kWays)
      if (wanted(way)) total += way.weight;
    if (total == 0) die("only=");
    uint64_t pick = below(total);
    for (const Way& way : kWays) {
      if (!wanted(way)) continue;
      if (pick < way.weight) return (this->*way.run)();
      pick -= way.weight;
    }
  }
  bool wanted(const Way& way) const {
    return options_.only.empty() ||
           ("," + options_.only + ",").find(std::string(",") + way.name + ",") != std::string::npos;
  }

  void pace() {
    usleep(static_cast<useconds_t>(200 + below(2000)));
    while (!stopping &&
           journal_.spent() >
               200e3 + options_.rate * 1e-9 * static_cast<double>(monotonic_ns() - begun_ns_))
      usleep(10'000);
  }

  // During a concurrent DROP EXTENSION, PostgreSQL itself raises some internal errors.
  static bool excused(const std::string& message) {
    for (const char* text : {"cache lookup failed for", "could not open relation with OID",
                             "could not find tuple for", "tuple concurrently"})
      if (message.find(text) != std::string::npos) return true;
    return false;
  }

  void report() {
    const auto write_to = [&](const char* suffix, const std::string& text) {
      if (FILE* f = std::fopen((options_.log + suffix).c_str(), "w")) {
        std::fputs(text.c_str(), f);
        std::fclose(f);
      }
    };
    std::string stats =
        "ids " + std::to_string(journal_.minted()) + " sessions " + std::to_string(session_) + "\n";
    std::string violations;
    for (const auto& [state, c] : connection_.complaints) {
      std::string line = state + " " + std::to_string(c.count) + " " + c.sample;
      std::replace(line.begin(), line.end(), '\n', ' ');
      stats += line + "\n";
      if ((state.starts_with("XX") && !excused(c.sample)) || state == "23505" || state == "stuck" ||
          state == "not after")
        violations += line + "\n";
    }
    write_to(".stats", stats);
    write_to(".violations", violations);
  }

  Options options_;
  std::mt19937_64 random_;
  Connection connection_;
  Journal journal_;
  uint32_t session_ = 0;
  uint32_t transaction_ = 0;
  std::pair<int64_t, int> last_;  // id, shard
  int64_t copies_ = 0;
  bool prepared_ = false;
  int64_t begun_ns_ = 0;
};

}  // namespace

}  // namespace torture

int main(int argc, char** argv) {
  using namespace torture;
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t split = argument.find('=');
    const std::string name = argument.substr(0, split);
    const std::string value = split == std::string::npos ? "" : argument.substr(split + 1);
    if (name == "conninfo")
      options.conninfo = value;
    else if (name == "log")
      options.log = value;
    else if (name == "only")
      options.only = value;
    else if (name == "line")
      options.line = static_cast<uint32_t>(std::stoul(value));
    else if (name == "seed")
      options.seed = std::stoull(value);
    else if (name == "max_wait")
      options.max_wait = std::stoi(value);
    else if (name == "rate")
      options.rate = std::stod(value);
    else if (name == "shards")
      for (size_t at = 0; at < value.size();
           at = value.find(',', at) == std::string::npos ? value.size() : value.find(',', at) + 1)
        options.shards.push_back(std::atoi(value.c_str() + at));
    else
      return std::fprintf(stderr, "unknown argument %s\n", argv[i]), 2;
  }
  if (options.conninfo.empty() || options.log.empty() || options.shards.size() < 2)
    return std::fprintf(stderr, "conninfo, log and two shards are needed\n"), 2;
  struct sigaction stop {};
  stop.sa_handler = [](int) { stopping = 1; };
  sigaction(SIGTERM, &stop, nullptr);
  signal(SIGPIPE, SIG_IGN);
  Client(options).run();
}
