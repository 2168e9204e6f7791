#pragma once

#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "record.hpp"

namespace torture {

inline constexpr int64_t kPostgresEpochUs = 946684800'000'000;  // 2000-01-01, in us since 1970

[[noreturn]] inline void die(const char* what) {
  std::perror(what);
  std::exit(2);
}

template <class T>
T big_endian(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (sizeof value == 8)
    return static_cast<T>(be64toh(static_cast<uint64_t>(value)));
  else
    return static_cast<T>(be32toh(static_cast<uint32_t>(value)));
}

class Journal {
 public:
  Journal(std::string path, uint32_t line) : path_(std::move(path)), line_(line) {
    log_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_ < 0) die(path_.c_str());
  }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void begin(uint32_t session, uint32_t transaction, int shard, int64_t sent_ns = monotonic_ns()) {
    record_ = Record{};
    record_.magic = kMagic;
    record_.kind = kIds;
    record_.line = line_;
    record_.session = session;
    record_.transaction = transaction;
    record_.shard = shard;
    record_.sent_ns = sent_ns;
    ids_.clear();
  }
  void take(int64_t id) { ids_.push_back(id); }
  void see_clock(const char* before, const char* after) {
    int64_t low = big_endian<int64_t>(before) + kPostgresEpochUs;
    int64_t high = big_endian<int64_t>(after) + kPostgresEpochUs;
    if (low > high) std::swap(low, high);
    record_.clock_low_us = record_.clock_low_us == 0 ? low : std::min(record_.clock_low_us, low);
    record_.clock_high_us = std::max(record_.clock_high_us, high);
  }
  void end(double cost = 1) {
    if (ids_.empty()) return;
    record_.received_ns = monotonic_ns();
    record_.count = static_cast<uint32_t>(ids_.size());
    buffer_.assign(reinterpret_cast<const char*>(&record_), sizeof record_);
    buffer_.append(reinterpret_cast<const char*>(ids_.data()), ids_.size() * sizeof ids_[0]);
    append(buffer_.data(), buffer_.size());
    spent_ += cost * static_cast<double>(buffer_.size());
    minted_ += ids_.size();
    ids_.clear();
  }
  void committed(uint32_t session, uint32_t transaction) {
    Record mark{};
    mark.magic = kMagic;
    mark.kind = kCommitted;
    mark.line = line_;
    mark.session = session;
    mark.transaction = transaction;
    mark.received_ns = monotonic_ns();
    append(&mark, sizeof mark);
  }

  void refused(uint32_t session, int shard, int64_t sent_ns, const std::string& state) {
    Record mark{};
    mark.magic = kMagic;
    mark.kind = kRefused;
    mark.line = line_;
    mark.session = session;
    mark.shard = shard;
    mark.sent_ns = sent_ns;
    mark.received_ns = monotonic_ns();
    mark.state = pack_state(state);
    append(&mark, sizeof mark);
  }

  size_t pending() const { return ids_.size(); }
  uint64_t minted() const { return minted_; }
  double spent() const { return spent_; }

 private:
  void append(const void* data, size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t n = write(log_, at, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) die(path_.c_str());
      at += n;
      size -= static_cast<size_t>(n);
    }
  }

  std::string path_;
  uint32_t line_;
  int log_ = -1;
  Record record_{};
  std::vector<int64_t> ids_;
  std::string buffer_;
  uint64_t minted_ = 0;
  double spent_ = 0;  // to limit the load
};

}  // namespace torture
