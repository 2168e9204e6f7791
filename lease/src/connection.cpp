#include "connection.hpp"

#include <cstring>

namespace snowflake::lease {

namespace {

// How the session has to be, whatever the role's or the database's settings are. A backend whose
// client has gone does not wait for the fleet's lock for ever.
constexpr char kSettings[] =
    "SET default_transaction_isolation = 'read committed';"
    "SET default_transaction_read_only = off;"
    "SET client_min_messages = warning;"
    "SET lock_timeout = 5000";

// What this exchange was told beside the answer. One exchange at a time.
constinit char notice[256]{};

void take_notice(void*, const PGresult* result) {
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  strlcpy(notice, text == nullptr ? "a notice" : text, sizeof(notice));
}

// libpq tries a list of hosts in its order, and without PQconnectdb() never gives up one that does
// not answer, whatever connect_timeout is. So the next exchange begins with the next host.
constinit int first_host = 0;

struct Hosts {
  int count;
  char host[1024];
  char hostaddr[1024];
  char port[256];
};

int entries(const char* list) {
  int count = 1;
  for (; *list != '\0'; ++list) count += *list == ',';
  return count;
}

// The list from an entry on, and then what is before that. A list that is too long stays empty,
// which libpq reads as not given.
void rotate(const char* list, int by, char* out, size_t size) {
  const char* from = list;
  while (by-- > 0) from = strchr(from, ',') + 1;
  out[0] = '\0';
  if (from == list || strlen(list) >= size) return;
  snprintf(out, size, "%s,%.*s", from, static_cast<int>(from - list) - 1, list);
}

void find_hosts(const char* conninfo, Hosts* hosts) {
  *hosts = Hosts{};
  hosts->count = 1;
  PQconninfoOption* const options = PQconninfoParse(conninfo, nullptr);
  if (options == nullptr) return;
  const char* host = "";
  const char* hostaddr = "";
  const char* port = "";
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    if (strcmp(option->keyword, "host") == 0) host = option->val;
    if (strcmp(option->keyword, "hostaddr") == 0) hostaddr = option->val;
    if (strcmp(option->keyword, "port") == 0) port = option->val;
  }
  const int count = entries(hostaddr[0] != '\0' ? hostaddr : host);
  const bool same =
      (host[0] == '\0' || entries(host) == count) &&
      (entries(port) == 1 || entries(port) == count) && strlen(host) < sizeof(hosts->host) &&
      strlen(hostaddr) < sizeof(hosts->hostaddr) && strlen(port) < sizeof(hosts->port);
  if (same) {
    hosts->count = count;
    first_host %= count;
    if (host[0] != '\0') rotate(host, first_host, hosts->host, sizeof(hosts->host));
    if (hostaddr[0] != '\0') rotate(hostaddr, first_host, hosts->hostaddr, sizeof(hosts->hostaddr));
    if (entries(port) == count) rotate(port, first_host, hosts->port, sizeof(hosts->port));
  }
  PQconninfoFree(options);
}

struct Deadline {
  int64_t at_us;
  bool may_stop;
};

void fail(Exchange* exchange, const char* what, const char* why) {
  exchange->answered = false;
  snprintf(exchange->failure, sizeof(exchange->failure), "%s: %s", what, why);
  // libpq ends its messages with a line feed, and puts some on two lines.
  for (char* c = exchange->failure; *c != '\0'; ++c)
    if (*c == '\n') *c = c[1] == '\0' ? '\0' : ' ';
}

// Waits for the connection's socket; false where there is no more time.
bool wait_for(PGconn* connection, int events, const Deadline& deadline, Exchange* exchange) {
  const int64_t left_ms = (deadline.at_us - monotonic_us()) / 1000;
  if (left_ms <= 0) {
    fail(exchange, "the control database did not answer in time", "gave up");
    return false;
  }
  const int happened =
      WaitLatchOrSocket(MyLatch, events | WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                        PQsocket(connection), static_cast<long>(left_ms), PG_WAIT_EXTENSION);
  if (happened & WL_LATCH_SET) ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  if (deadline.may_stop && ShutdownRequestPending) {
    fail(exchange, "the server is shutting down", "gave up");
    return false;
  }
  return true;
}

bool connect(PGconn* connection, const Deadline& deadline, Exchange* exchange) {
  if (connection == nullptr || PQstatus(connection) == CONNECTION_BAD) {
    fail(exchange, "could not connect to the control database",
         connection == nullptr ? "out of memory" : PQerrorMessage(connection));
    return false;
  }
  for (PostgresPollingStatusType status = PGRES_POLLING_WRITING; status != PGRES_POLLING_OK;
       status = PQconnectPoll(connection)) {
    if (status == PGRES_POLLING_FAILED) {
      fail(exchange, "could not connect to the control database", PQerrorMessage(connection));
      return false;
    }
    const int event =
        status == PGRES_POLLING_READING ? int{WL_SOCKET_READABLE} : int{WL_SOCKET_WRITEABLE};
    if (!wait_for(connection, event, deadline, exchange)) return false;
  }
  if (PQsetnonblocking(connection, 1) == 0) return true;
  fail(exchange, "could not use the connection", PQerrorMessage(connection));
  return false;
}

// Until everything that was asked has been sent.
bool send(PGconn* connection, const Deadline& deadline, Exchange* exchange) {
  for (;;) {
    const int left = PQflush(connection);
    if (left == 0) return true;
    if (left < 0) {
      fail(exchange, "could not ask the control database", PQerrorMessage(connection));
      return false;
    }
    if (!wait_for(connection, WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE, deadline, exchange))
      return false;
    if (PQconsumeInput(connection) == 0) {
      fail(exchange, "could not ask the control database", PQerrorMessage(connection));
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
  fail(exchange, "the control database refused", text);
}

// Reads results until there are no more: that is after the commit. `rows`: one row is expected.
bool read(PGconn* connection, bool row, const Deadline& deadline, Exchange* exchange) {
  bool good = true;
  bool found = !row;
  for (;;) {
    while (PQisBusy(connection)) {
      if (!wait_for(connection, WL_SOCKET_READABLE, deadline, exchange)) return false;
      if (PQconsumeInput(connection) == 0) {
        fail(exchange, "lost the connection to the control database", PQerrorMessage(connection));
        return false;
      }
    }
    PGresult* const result = PQgetResult(connection);
    if (result == nullptr) break;
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK && row && PQntuples(result) == 1 &&
        PQnfields(result) == kColumns) {
      copy_row(result, exchange);
      found = true;
    } else if (status != PGRES_COMMAND_OK && good) {
      good = false;
      copy_error(result, exchange);
    }
    PQclear(result);
  }
  if (good && !found) {
    fail(exchange, "the control database answered with something else", "is it another version?");
    good = false;
  }
  // Broken after the answer, the commit may not have been.
  if (good && PQstatus(connection) != CONNECTION_OK) {
    fail(exchange, "lost the connection to the control database", PQerrorMessage(connection));
    good = false;
  }
  return good;
}

}  // namespace

void ask(const char* conninfo, const char* query, int count, const char* const* parameters,
         int timeout_ms, bool may_stop, Exchange* exchange) {
  *exchange = Exchange{};
  notice[0] = '\0';
  const Deadline deadline{monotonic_us() + int64_t{timeout_ms} * 1000, may_stop};
  Hosts hosts;
  find_hosts(conninfo, &hosts);
  // What is empty is as if it were not there; what comes later counts.
  const char* const keywords[] = {"dbname", "host", "hostaddr", "port", "fallback_application_name",
                                  nullptr};
  const char* const values[] = {conninfo,   hosts.host,        hosts.hostaddr,
                                hosts.port, "snowflake lease", nullptr};
  PGconn* const connection = PQconnectStartParams(keywords, values, 1);
  const Deadline to_connect{monotonic_us() + int64_t{timeout_ms} * 1000 / hosts.count, may_stop};
  bool good = connect(connection, to_connect, exchange);
  if (!good) ++first_host;
  if (good) {
    PQsetNoticeReceiver(connection, take_notice, nullptr);
    good = PQsendQuery(connection, kSettings) == 1 && send(connection, deadline, exchange) &&
           read(connection, false, deadline, exchange);
  }
  if (good) {
    if (PQsendQueryParams(connection, query, count, nullptr, parameters, nullptr, nullptr, 0) !=
        1) {
      fail(exchange, "could not ask the control database", PQerrorMessage(connection));
      good = false;
    }
    good =
        good && send(connection, deadline, exchange) && read(connection, true, deadline, exchange);
  }
  if (good && notice[0] != '\0') {
    fail(exchange, "the control database answered with a warning", notice);
    good = false;
  }
  exchange->answered = good;
  PQfinish(connection);
}

}  // namespace snowflake::lease
