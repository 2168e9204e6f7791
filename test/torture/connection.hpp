// Opens a libpq connection with deadlines, so that each call returns even if the server fails.
#pragma once

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "record.hpp"

namespace torture {

inline volatile std::sig_atomic_t stopping = 0;

struct Complaint {
  uint64_t count = 0;
  std::string sample;
};

struct Parameter {
  std::string text;
  Parameter(long long value) : text(std::to_string(value)) {}
};

class Connection {
 public:
  explicit Connection(std::string conninfo) : conninfo_(std::move(conninfo)) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool open() {
    close();
    conn_ = PQconnectdb(conninfo_.c_str());
    if (PQstatus(conn_) != CONNECTION_OK) {
      complain("connect", PQerrorMessage(conn_));
      close();
      return false;
    }
    PQsetNoticeReceiver(conn_, on_notice, this);
    return true;
  }
  void close() {
    if (conn_ != nullptr) PQfinish(conn_);
    conn_ = nullptr;
  }
  bool is_open() const { return conn_ != nullptr; }
  bool warned() const { return warned_; }
  PGconn* raw() const { return conn_; }
  const std::string& state() const { return state_; }

  // Runs one statement and calls `row` for each row that arrives, with binary values. Returns false
  // if the statement failed, even if some rows have arrived.
  bool run(const char* text, const std::vector<Parameter>& parameters,
           const std::function<void(PGresult*)>& row, bool prepared = false) {
    if (conn_ == nullptr) return false;
    warned_ = false;
    state_.clear();
    std::vector<const char*> values;
    values.reserve(parameters.size());
    for (const auto& p : parameters) values.push_back(p.text.c_str());
    const int n = static_cast<int>(values.size());
    const int sent =
        prepared ? PQsendQueryPrepared(conn_, text, n, values.data(), nullptr, nullptr, 1)
                 : PQsendQueryParams(conn_, text, n, nullptr, values.data(), nullptr, nullptr, 1);
    if (sent == 0) return lost();
    PQsetSingleRowMode(conn_);
    return finish(row);
  }
  bool run(const char* text) {
    return run(text, {}, [](PGresult*) {});
  }

  bool copy(const char* text, const std::string& lines) {
    if (conn_ == nullptr) return false;
    warned_ = false;
    state_.clear();
    if (PQsendQuery(conn_, text) == 0) return lost();
    PGresult* first = next();
    if (first == nullptr) return lost();
    const bool begun = PQresultStatus(first) == PGRES_COPY_IN;
    if (!begun) note(first);
    PQclear(first);
    if (begun && (PQputCopyData(conn_, lines.data(), static_cast<int>(lines.size())) != 1 ||
                  PQputCopyEnd(conn_, nullptr) != 1))
      return lost();
    return finish([](PGresult*) {}) && begun;
  }

  std::map<std::string, Complaint> complaints;

  void complain(const std::string& what, const char* sample) {
    Complaint& c = complaints[what];
    if (c.count++ == 0) c.sample = sample == nullptr ? "" : sample;
  }

 private:
  static void on_notice(void* self, const PGresult* result) {
    const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity != nullptr && std::string_view(severity) == "WARNING")
      static_cast<Connection*>(self)->warned_ = true;
  }

  bool lost() {
    complain("lost", PQerrorMessage(conn_));
    close();
    return false;
  }

  void note(const PGresult* result) {
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    state_ = state == nullptr ? "lost" : state;
    // Internal errors (SQLSTATE XX...) are counted by message, because the test accepts some
    // internal errors that PostgreSQL itself raises.
    const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const bool internal = state_.starts_with("XX") && message != nullptr && complaints.size() < 100;
    complain(internal ? state_ + " " + message : state_, PQresultErrorMessage(result));
  }

  // Returns the next result of the statement, or null after the last one. Closes the connection
  // when its deadline has passed.
  PGresult* next() {
    int64_t deadline = monotonic_ns() + 40'000'000'000;
    bool told_to_stop = false;
    while (PQisBusy(conn_) != 0) {
      pollfd fd{PQsocket(conn_), POLLIN, 0};
      poll(&fd, 1, 500);
      if (PQconsumeInput(conn_) == 0) break;  // received data stays readable
      if (stopping && !told_to_stop) {
        told_to_stop = true;
        deadline = std::min(deadline, monotonic_ns() + 3'000'000'000);
      }
      if (monotonic_ns() > deadline) {
        if (!told_to_stop) complain("stuck", "no answer for 40 s");
        close();
        return nullptr;
      }
    }
    return PQgetResult(conn_);
  }

  bool finish(const std::function<void(PGresult*)>& row) {
    bool good = true;
    while (PGresult* result = next()) {
      switch (PQresultStatus(result)) {
        case PGRES_SINGLE_TUPLE:
          row(result);
          break;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
          break;
        default:
          good = false;
          note(result);
      }
      PQclear(result);
    }
    if (conn_ == nullptr) return false;
    if (PQstatus(conn_) != CONNECTION_OK) return lost();
    return good;
  }

  std::string conninfo_;
  PGconn* conn_ = nullptr;
  bool warned_ = false;
  std::string state_;
};

}  // namespace torture
