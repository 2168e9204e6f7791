// Fuzzes all SQL functions of the extension by a grammar, with values that are likely to reveal
// faults.
//
//   fuzz conninfo=... seed=N seconds=S
//
// Generated statements may fail with an SQLSTATE of an expected error. The fuzzer prints statements
// that cause an internal error (SQLSTATE XX...), lose the connection or never end.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "connection.hpp"

namespace torture {

namespace {

class Grammar {
 public:
  explicit Grammar(uint64_t seed) : random_(seed) {}

  std::string statement() {
    switch (below(16)) {
      case 0:
        return "BEGIN " + pick({"", "READ ONLY", "ISOLATION LEVEL SERIALIZABLE", "READ WRITE"});
      case 1:
        return pick({"COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "ABORT"});
      case 2:
        return setting();
      case 3:
        return "EXPLAIN (ANALYZE, COSTS OFF) SELECT " + any() + source();
      case 4:
        return definition();
      case 5:
        return "INSERT INTO fuzz (at, n) SELECT " + time(1) + ", " + number(1) + source() +
               " RETURNING id, snowflake.decode(id)";
      case 6:
        return "DO $$ BEGIN FOR i IN 1.." + std::to_string(1 + below(5)) + " LOOP BEGIN PERFORM " +
               any() + "; " + pick({"", "RAISE EXCEPTION 'x';", "PERFORM 1/0;"}) +
               " EXCEPTION WHEN OTHERS THEN NULL; END; " + pick({"", "COMMIT;", "ROLLBACK;"}) +
               " END LOOP; END $$";
      case 7:
        return "SELECT count(*) FROM fuzz WHERE " + condition();
      case 8:
        return "SELECT * FROM snowflake." +
               pick({"layout", "shard_stats", "clock_history", "high_water", "seal", "dumped_seal",
                     "layout()", "shard_stats()", "clock_history()", "database_stats", "refusals",
                     "health", "now_bounds()", "explain_id(" + id(2) + ")"}) +
               pick({"", " LIMIT 1", ", generate_series(1, 3)"});
      case 9:
        return "WITH x AS (SELECT " + id(2) + " AS id" + source() + ") SELECT id, " +
               "snowflake.decode(id), snowflake.make_id(snowflake.time_of(id), "
               "snowflake.shard_of(id), snowflake.sequence_of(id), snowflake.region_of(id)) = id "
               "FROM x";
      case 10:
        return "SELECT (snowflake.decode(" + id(2) + "))." +
               pick({"created_at", "region", "shard", "sequence", "*", "nothing"});
      case 11:
        return "SELECT min(x), max(x), count(DISTINCT x) FROM (SELECT unnest(" + ids() + ") x) s";
      case 12:
        return mischief();
      default:
        return "SELECT " + any() + source();
    }
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  std::string pick(const std::vector<std::string>& choices) {
    return choices[below(choices.size())];
  }

  std::string number(int depth) {
    if (depth > 0 && below(4) == 0)
      return pick({"snowflake.shard_of(" + id(depth - 1) + ")",
                   "snowflake.sequence_of(" + id(depth - 1) + ")",
                   "snowflake.region_of(" + id(depth - 1) + ")",
                   "(" + number(depth - 1) + " + " + number(depth - 1) + ")",
                   "length(" + id(depth - 1) + "::text)"});
    return pick({"0",
                 "1",
                 "5",
                 "-1",
                 "127",
                 "128",
                 "1023",
                 "1024",
                 "8191",
                 "8192",
                 "65536",
                 "1000000",
                 "1000001",
                 "2147483647",
                 "(-2147483648)",
                 "NULL",
                 "'7'",
                 "''",
                 "'x'",
                 "1.5",
                 "1e9",
                 std::to_string(below(8192))});
  }

  std::string id(int depth) {
    if (depth > 0 && below(3) == 0)
      return pick({"snowflake.next_id(" + number(depth - 1) + ")", "snowflake.next_id()",
                   "snowflake.next_id(" + number(depth - 1) + ", " + id(depth - 1) + ")",
                   "snowflake.next_id_near(" + id(depth - 1) + ")", "snowflake.last_id()",
                   "snowflake.min_id(" + time(depth - 1) + ")",
                   "snowflake.max_id(" + time(depth - 1) + ")",
                   "snowflake.make_id(" + time(depth - 1) + ", " + number(depth - 1) + ", " +
                       number(depth - 1) + ")",
                   "snowflake.make_id(" + time(depth - 1) + ", 5, 3, " + number(depth - 1) + ")",
                   "(" + ids() + ")[" + number(depth - 1) + "]",
                   "(" + id(depth - 1) + " # " + id(depth - 1) + ")", "(" + id(depth - 1) + " - 1)",
                   "lower(snowflake.id_range(" + range(depth - 1) + "))"});
    return pick({"0", "1", "-1", "9223372036854775807", "(-9223372036854775808)",
                 "9007199254740991", "9007199254740992", "4611686018427387904", "NULL", "'x'",
                 "9223372036854775808", "1.5", std::to_string(static_cast<int64_t>(random_())),
                 std::to_string(static_cast<int64_t>(random_() >> below(64)))});
  }

  std::string time(int depth) {
    if (depth > 0 && below(3) == 0)
      return pick({"snowflake.time_of(" + id(depth - 1) + ")",
                   "(" + time(depth - 1) + " + interval '1 ms')",
                   "(" + time(depth - 1) + " - interval '100 years')", "now()", "clock_timestamp()",
                   "to_timestamp(" + number(depth - 1) + ")"});
    return pick({"'infinity'::timestamptz", "'-infinity'::timestamptz", "NULL",
                 "'2025-01-01 00:00:00+00'", "'2024-12-31 23:59:59.999999+00'",
                 "'2025-01-01 00:00:00.000001+00'", "'2059-09-06 15:47:35.551+00'",
                 "'2059-09-06 15:47:35.552+00'", "'4714-11-24 00:00:00+00 BC'::timestamptz",
                 "'294276-12-31 23:59:59.999999+00'", "'2094-05-15+00'", "'epoch'", "'today'",
                 "'2030-02-30'", "'2026-06-01 12:00:00.0005+00'"});
  }

  std::string range(int depth) {
    return pick({"'empty'::tstzrange", "'(,)'::tstzrange", "NULL", "'[2026-01-01,)'::tstzrange",
                 "'[infinity,infinity]'::tstzrange", "'(-infinity,infinity)'::tstzrange",
                 "tstzrange(" + time(depth) + ", " + time(depth) + ", '" +
                     pick({"[]", "[)", "(]", "()", "x"}) + "')",
                 "tstzrange(" + time(depth) + ", NULL)", "tstzrange(NULL, " + time(depth) + ")"});
  }

  std::string ids() {
    return "snowflake.next_ids(" + number(1) + ", " + pick({number(1), "1", "3", "2000"}) +
           pick({"", "", ", " + id(1)}) + ")";
  }

  std::string any() {
    switch (below(16)) {
      case 0:
        return "snowflake.decode(" + id(2) + ")";
      case 1:
        return "snowflake.id_range(" + range(1) + ")";
      case 2:
        return "snowflake.created_within(" + id(2) + ", " + time(2) + ", " + time(2) + ")";
      case 3:
        return "cardinality(" + ids() + ")";
      case 4:
        return "snowflake.observe(" + id(2) + ")";
      case 5:
        return below(8) == 0 ? "snowflake.accept_clock()" : id(2);
      case 6:
        return time(2);
      case 7:
        return number(3);
      case 8:
        return "snowflake." +
               pick({"next_id", "next_id_near", "next_ids", "decode", "observe", "min_id",
                     "id_range", "make_id", "last_id", "created_within", "accept_clock",
                     "accept_clone", "last_id_before", "is_seal", "databases", "present_seal",
                     "check_sequence_page"}) +
               "(" + pick({"", number(1), id(1), time(1), "NULL, NULL", "ARRAY[1]", "*"}) + ")";
      case 9:
        return "(SELECT array_agg(" + id(2) + ") FROM generate_series(1, 3))";
      case 10:
        return "CASE WHEN random() < 0.5 THEN " + id(2) + " ELSE " + id(2) + " END";
      default:
        return id(3);
    }
  }

  std::string source() {
    return pick({"", "", " FROM generate_series(1, 7)", " FROM fuzz LIMIT 5", " WHERE false",
                 " FROM generate_series(1, 3) a, generate_series(1, 3) b"});
  }

  std::string condition() {
    return pick({"snowflake.created_within(id, " + time(1) + ", " + time(1) + ")",
                 "id >= " + id(2) + " AND id < " + id(2), "snowflake.shard_of(id) = " + number(1),
                 "id <@ snowflake.id_range(" + range(1) + ")", "snowflake.time_of(id) > " + time(1),
                 "shard = " + number(1)});
  }

  std::string setting() {
    return pick({"SET ", "SET LOCAL ", "ALTER ROLE fuzz SET "}) + "snowflake." +
           pick({"max_wait", "default_shard", "max_lead", "reserve", "layout", "owned_shards",
                 "nothing", "sequence_spread", "epoch"}) +
           " = " +
           pick({"0", "-1", "5", "20", "2147483647", "'10ms'", "'1d'", "DEFAULT", "''", "'x'",
                 "9999999999"});
  }

  std::string definition() {
    switch (below(8)) {
      case 0:
        return "CREATE TEMP TABLE t (id bigint DEFAULT " + id(2) +
               ", at timestamptz GENERATED ALWAYS "
               "AS (snowflake.time_of(id)) STORED); INSERT INTO t VALUES (DEFAULT), (" +
               id(1) + ")";
      case 1:
        return "DROP TABLE IF EXISTS t";
      case 2:
        return "CREATE INDEX ON fuzz ((snowflake.shard_of(id)))";
      case 3:
        return "CREATE TEMP TABLE p (id bigint) PARTITION BY RANGE (id); CREATE TEMP TABLE p1 "
               "PARTITION "
               "OF p FOR VALUES FROM (snowflake.min_id(" +
               time(1) + ")) TO (snowflake.min_id(" + time(1) + ")); DROP TABLE p";
      case 4:
        return "PREPARE q AS SELECT " + any() + "; EXECUTE q; EXECUTE q; DEALLOCATE q";
      case 5:
        return "DECLARE c CURSOR FOR SELECT " + any() + source() + "; FETCH ALL c; CLOSE c";
      case 6:
        return "SET LOCAL force_parallel_mode = on; SELECT " + any() + source();
      default:
        return "DROP INDEX IF EXISTS fuzz_shard_of_idx; TRUNCATE fuzz";
    }
  }

  // Returns a statement with which an ordinary user could try to damage the extension, such as DROP
  // EXTENSION.
  std::string mischief() {
    return pick({"SELECT setval('snowflake.high_water', 1)",
                 "SELECT nextval('snowflake.high_water')",
                 "SELECT setval('snowflake.seal', 0)",
                 "ALTER SEQUENCE snowflake.high_water RESTART",
                 "ALTER SEQUENCE snowflake.high_water SET UNLOGGED",
                 "DROP EXTENSION snowflake",
                 "DROP SEQUENCE snowflake.seal",
                 "CREATE EXTENSION snowflake",
                 "LOCK TABLE fuzz",
                 "SELECT pg_advisory_lock(16384)",
                 "DELETE FROM snowflake.high_water",
                 "COPY fuzz (n) FROM PROGRAM 'echo 1'",
                 "SELECT snowflake.initial_state()",
                 "SELECT pg_catalog.currval('snowflake.high_water')",
                 "PREPARE TRANSACTION 'x'",
                 "INSERT INTO snowflake.dumped_seal VALUES (" + number(1) + ")",
                 "CREATE TEMP TABLE s (); CREATE TRIGGER s BEFORE INSERT ON s FOR EACH " +
                     pick({"ROW", "STATEMENT"}) +
                     " EXECUTE FUNCTION snowflake.present_seal(); INSERT INTO s DEFAULT VALUES",
                 "ALTER EXTENSION snowflake UPDATE",
                 "LISTEN x; NOTIFY x",
                 "DISCARD ALL"});
  }

  std::mt19937_64 random_;
};

int run(const std::string& conninfo, uint64_t seed, int64_t seconds) {
  Grammar grammar(seed);
  Connection connection(conninfo);
  std::map<std::string, uint64_t> states;
  uint64_t statements = 0;
  int bad = 0;
  const int64_t until = monotonic_ns() + seconds * 1'000'000'000;
  while (!stopping && monotonic_ns() < until) {
    if (!connection.is_open()) {
      if (!connection.open()) return std::fprintf(stderr, "cannot connect\n"), 2;
      PQsetNoticeReceiver(
          connection.raw(), [](void*, const PGresult*) {}, nullptr);
      if (!connection.run("SET statement_timeout = 400") ||
          !connection.run("SELECT set_config('snowflake.max_wait', '50', false)"))
        return std::fprintf(stderr, "cannot prepare the session\n"), 2;
    }
    const std::string text = grammar.statement();
    ++statements;
    PGresult* result = PQexec(connection.raw(), text.c_str());
    const ExecStatusType status = PQresultStatus(result);
    const char* field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    std::string state = field != nullptr ? field : "00000";
    if (PQstatus(connection.raw()) != CONNECTION_OK) {
      state = "lost";
      connection.close();
    } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT) {
      connection.close();
    }
    if (++states[state] == 1) std::printf("# %s first by: %s\n", state.c_str(), text.c_str());
    if (state.starts_with("XX") || state == "lost") {
      ++bad;
      std::printf("# BAD %s: %s\n#   %s\n", state.c_str(), text.c_str(),
                  PQresultErrorMessage(result));
    }
    PQclear(result);
  }
  std::printf("# %llu statements, %zu different outcomes, %d bad\n",
              static_cast<unsigned long long>(statements), states.size(), bad);
  return bad == 0 && states["00000"] > 0 && states.size() > 5 ? 0 : 1;
}

}  // namespace

}  // namespace torture

int main(int argc, char** argv) {
  std::string conninfo;
  uint64_t seed = 1;
  int64_t seconds = 10;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("conninfo="))
      conninfo = argument.substr(9);
    else if (argument.starts_with("seed="))
      seed = std::stoull(argument.substr(5));
    else if (argument.starts_with("seconds="))
      seconds = std::stoll(argument.substr(8));
    else
      return std::fprintf(stderr, "unknown argument %s\n", argv[i]), 2;
  }
  signal(SIGPIPE, SIG_IGN);
  return torture::run(conninfo, seed, seconds);
}
