#include "connection.hpp"

#include <cstdlib>
#include <cstring>

#include "messages.hpp"

namespace snowflake::lease {

namespace {

// The lease worker first sends the statements of kSettings, because its role and database on the
// lease server may have other settings. With the TCP settings, a backend of the lease server ends
// within half a minute after its client has failed. Without the TCP settings, the backend of a
// failed client would count towards a CONNECTION LIMIT for two hours.
constexpr char kSettings[] =
    "SET default_transaction_isolation = 'read committed';"
    "SET default_transaction_read_only = off;"
    "SET client_min_messages = warning;"
    "SET lock_timeout = 5000;"
    "SET statement_timeout = 0;"
    // Some timeouts do not exist in all versions of PostgreSQL, so pg_settings is queried.
    "DO $$ BEGIN PERFORM pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings"
    " WHERE name IN ('transaction_timeout', 'idle_session_timeout',"
    " 'idle_in_transaction_session_timeout'); END $$;"
    "SET tcp_keepalives_idle = 10;"
    "SET tcp_keepalives_interval = 5;"
    "SET tcp_keepalives_count = 3;"
    "SET tcp_user_timeout = 20000;"
    // The start time and the port of the lease server show whether the lease server is this server
    // itself (own_server).
    "SELECT (extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000)::bigint,"
    " pg_catalog.current_setting('port')";

// The longest time for the look-up of a host name, in ms.
constexpr int64_t kLookUpMs = 10'000;

// The lease worker has at most one connection at a time.
constinit PGconn* connection = nullptr;
constinit Target target{};
constinit bool own_server = false;
// The warning of a cancelled wait for a synchronous standby. An answer with this warning is not
// used.
constinit char warning[256]{};
constexpr int kMostRemarks = 8;
constinit char remarks[kMostRemarks][256]{};  // messages of the lease server for this server's log
constinit int remark_count = 0;

// If a wait for a synchronous standby was cancelled, SyncRepWaitForLSN() sends a warning. The name
// of the C function identifies the warning, because the warning's text is translated.
void take_notice(void*, const PGresult* result) {
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const char* function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
  if (text == nullptr) return;
  if (function != nullptr && strcmp(function, "SyncRepWaitForLSN") == 0)
    strlcpy(warning, text, sizeof(warning));
  else if (remark_count < kMostRemarks)
    strlcpy(remarks[remark_count++], text, sizeof(remarks[0]));
}

void fail(Exchange* exchange, const char* what, const char* why) {
  exchange->answered = false;
  snprintf(exchange->failure, sizeof(exchange->failure), "%s: %s", what, why);
  // libpq ends each message with a line feed, and some messages have two lines.
  for (char* c = exchange->failure; *c != '\0'; ++c)
    if (*c == '\n') *c = c[1] == '\0' ? '\0' : ' ';
}

// Waits for the connection's socket, and returns false if the deadline has passed.
bool wait_to_go_on(int events, const Deadline& deadline, Exchange* exchange) {
  if (wait_for(PQsocket(connection), events, deadline) == nullptr) return true;
  char where[480];
  snprintf(where, sizeof(where), "stopped waiting for %s", target.name);
  fail(exchange,
       deadline.may_stop && ShutdownRequestPending ? "the lease worker received a request to end"
                                                   : "the lease server did not answer in time",
       where);
  return false;
}

bool connect(const Deadline& deadline, Exchange* exchange) {
  if (connection == nullptr || PQstatus(connection) == CONNECTION_BAD) {
    fail(exchange, "could not connect to the lease server",
         connection == nullptr ? "out of memory" : PQerrorMessage(connection));
    return false;
  }
  for (PostgresPollingStatusType status = PGRES_POLLING_WRITING; status != PGRES_POLLING_OK;
       status = PQconnectPoll(connection)) {
    if (status == PGRES_POLLING_FAILED) {
      fail(exchange, "could not connect to the lease server", PQerrorMessage(connection));
      return false;
    }
    const int event =
        status == PGRES_POLLING_READING ? int{WL_SOCKET_READABLE} : int{WL_SOCKET_WRITEABLE};
    if (!wait_to_go_on(event, deadline, exchange)) return false;
  }
  if (PQsetnonblocking(connection, 1) == 0) return true;
  fail(exchange, "could not set the connection to nonblocking mode", PQerrorMessage(connection));
  return false;
}

bool send(const Deadline& deadline, Exchange* exchange) {
  for (;;) {
    const int left = PQflush(connection);
    if (left == 0) return true;
    if (left < 0) {
      fail(exchange, "could not send a request to the lease server", PQerrorMessage(connection));
      return false;
    }
    if (!wait_to_go_on(WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE, deadline, exchange)) return false;
    if (PQconsumeInput(connection) == 0) {
      fail(exchange, "could not send a request to the lease server", PQerrorMessage(connection));
      return false;
    }
  }
}

void copy_row(const PGresult* result, Exchange* exchange) {
  for (int i = 0; i < kColumns; ++i) {
    exchange->null[i] = PQgetisnull(result, 0, i) != 0;
    strlcpy(exchange->column[i], PQgetvalue(result, 0, i), sizeof(exchange->column[i]));
  }
}

void copy_error(const PGresult* result, Exchange* exchange) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const char* detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
  char text[400];
  snprintf(text, sizeof(text), "%s (%s)%s%s", primary == nullptr ? "an error" : primary,
           state == nullptr ? "?" : state, detail == nullptr ? "" : ". ",
           detail == nullptr ? "" : detail);
  fail(exchange, "the lease server refused", text);
}

int64_t started_ms() {
  return (PgStartTime + 500) / 1000 +
         int64_t{POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE} * SECS_PER_DAY * 1000;
}

enum class Expected { who, answer };

bool take_row(const PGresult* result, Expected expected, Exchange* exchange) {
  const int columns = expected == Expected::answer ? kColumns : 2;
  if (PQntuples(result) != 1 || PQnfields(result) != columns) return false;
  if (expected == Expected::answer) {
    copy_row(result, exchange);
    return true;
  }
  const int64_t apart_ms = strtoll(PQgetvalue(result, 0, 0), nullptr, 10) - started_ms();
  own_server = std::abs(apart_ms) <= 1 && atoi(PQgetvalue(result, 0, 1)) == PostPortNumber;
  return true;
}

bool read(Expected expected, const Deadline& deadline, Exchange* exchange) {
  bool good = true;
  bool found = false;
  for (;;) {
    while (PQisBusy(connection)) {
      if (!wait_to_go_on(WL_SOCKET_READABLE, deadline, exchange)) return false;
      if (PQconsumeInput(connection) == 0) {
        fail(exchange, "lost the connection to the lease server", PQerrorMessage(connection));
        return false;
      }
    }
    PGresult* const result = PQgetResult(connection);
    if (result == nullptr) break;
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK && take_row(result, expected, exchange)) {
      found = true;
    } else if (status != PGRES_COMMAND_OK && good) {
      good = false;
      copy_error(result, exchange);
    }
    PQclear(result);
  }
  if (good && !found) {
    fail(exchange, "the lease server returned an unexpected result",
         "the lease server may have another version of snowflake_fleet");
    good = false;
  }
  // If the connection was lost after the row was received, the COMMIT may have failed.
  if (good && PQstatus(connection) != CONNECTION_OK) {
    fail(exchange, "lost the connection to the lease server", PQerrorMessage(connection));
    good = false;
  }
  return good;
}

bool finish_question(int sent, Expected expected, const Deadline& deadline, Exchange* exchange) {
  if (sent == 1) return send(deadline, exchange) && read(expected, deadline, exchange);
  fail(exchange, "could not send a request to the lease server", PQerrorMessage(connection));
  return false;
}

void start(const char* conninfo) {
  // libpq ignores empty values of connection parameters. If a connection parameter appears twice,
  // libpq uses the last value.
  const char* const keywords[] = {"dbname", "host", "hostaddr", "port", "fallback_application_name",
                                  nullptr};
  const char* const values[] = {conninfo,    target.host,       target.hostaddr,
                                target.port, "snowflake lease", nullptr};
  connection = PQconnectStartParams(keywords, values, 1);
  if (connection != nullptr) PQsetNoticeReceiver(connection, take_notice, nullptr);
}

void log_remarks() {
  for (int i = 0; i < remark_count; ++i) {
    char text[320];
    make_ascii(remarks[i]);
    snprintf(text, sizeof(text), "the lease server sent a notice with its answer: %s", remarks[i]);
    log_remark(text);
  }
}

}  // namespace

void ask(const char* conninfo, const char* query, int count, const char* const* parameters,
         int timeout_ms, bool may_stop, Exchange* exchange) {
  *exchange = Exchange{};
  warning[0] = '\0';
  remark_count = 0;
  // If `may_stop` is false, timeout_ms limits the time for connecting, the request and the answer.
  Deadline deadline = in_ms(timeout_ms, may_stop);
  const auto at_most = [&](int64_t ms) {
    return may_stop ? in_ms(ms, true) : earlier(in_ms(ms, false), deadline);
  };
  char why[400];
  if (!find_target(conninfo, at_most(kLookUpMs), &target, why, sizeof(why))) {
    fail(exchange, "could not connect to the lease server", why);
    return;
  }
  start(conninfo);
  const int usual_ms = target.alone ? timeout_ms : timeout_ms / 2;
  const int to_connect_ms = target.connect_timeout_ms > 0 ? target.connect_timeout_ms : usual_ms;
  bool good = connect(at_most(to_connect_ms), exchange);
  if (may_stop) deadline = in_ms(timeout_ms, true);
  if (good)
    good = finish_question(PQsendQuery(connection, kSettings), Expected::who, deadline, exchange);
  if (good)
    good = finish_question(
        PQsendQueryParams(connection, query, count, nullptr, parameters, nullptr, nullptr, 0),
        Expected::answer, deadline, exchange);
  if (good && warning[0] != '\0') {
    fail(exchange, "the lease server answered with a warning", warning);
    good = false;
  }
  exchange->answered = good;
  hang_up();
  log_remarks();
}

void make_ascii(char* text) {
  for (; *text != '\0'; ++text)
    if (*text < ' ' || *text > '~') *text = *text == '\t' || *text == '\n' ? ' ' : '?';
}

void hang_up() {
  PQfinish(connection);
  connection = nullptr;
}

const char* asked_host() {
  return target.name;
}

bool is_own_server() {
  return own_server;
}

}  // namespace snowflake::lease
