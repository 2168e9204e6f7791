// A high-water mark that is stored durably in a file outside PostgreSQL, as one line of text. Only
// one process at a time can lock the mark file.
//
// The line in the mark file is overwritten in place. A disk writes the line of the mark file as a
// whole, because the line is shorter than a disk sector. The function open() refuses a mark file
// whose checksum does not match. The lock of the mark file belongs to the open file, so the lock
// ends with the process.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/generator_error.hpp"
#include "core/seal.hpp"
#include "core/sha256.hpp"

namespace snowflake {

class MarkFile {
 public:
  MarkFile() = default;
  MarkFile(const MarkFile&) = delete;
  MarkFile& operator=(const MarkFile&) = delete;
  ~MarkFile() {
    if (file_ >= 0) ::close(file_);
  }

  // Creates the file that stores the high-water mark (time limit) of a region, and flushes the file
  // to disk. If create() fails, no new file remains. If create() or open() returns
  // GeneratorError::file_system, `errno` shows the reason.
  static GeneratorError create(const std::string& path, const Layout& layout, uint32_t region,
                               int64_t mark_ms) noexcept {
    MarkFile made;
    made.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made.file_ < 0)
      return errno == EEXIST ? GeneratorError::file_exists : GeneratorError::file_system;
    made.seal_ = seal_of(layout);
    made.region_ = region;
    // Locks the new file, because another process could open the file before its first line is
    // durable.
    if (::flock(made.file_, LOCK_EX | LOCK_NB) == 0 && made.put(mark_ms) && sync_folder(path))
      return GeneratorError::none;
    const int reason = errno;
    ::unlink(path.c_str());
    errno = reason;
    return GeneratorError::file_system;
  }

  // Locks the mark file and reads the stored mark. REQUIRES that this MarkFile object has no open
  // file.
  GeneratorError open(const std::string& path, const Layout& layout, uint32_t region) noexcept {
    seal_ = seal_of(layout);
    region_ = region;
    path_ = path;
    file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file_ < 0)
      return errno == ENOENT ? GeneratorError::file_missing : GeneratorError::file_system;
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0)
      return errno == EWOULDBLOCK ? GeneratorError::file_in_use : GeneratorError::file_system;
    return is_in_place() ? read() : GeneratorError::file_system;
  }

  int64_t mark_ms() const noexcept { return mark_ms_; }

  // Returns true after the new high-water mark was flushed to disk. If write() fails, `errno` shows
  // the reason.
  bool write(int64_t mark_ms) noexcept { return is_in_place() && put(mark_ms); }

 private:
  static constexpr size_t kMostBytes = 256;

  std::string line(int64_t seal, uint32_t region, int64_t mark_ms) const {
    char text[kMostBytes];
    std::snprintf(text, sizeof text, "snowflake mark 1 seal %019lld region %08u ms %019lld",
                  static_cast<long long>(seal), region, static_cast<long long>(mark_ms));
    const Sha256 hash = sha256(text);
    char sum[32];
    std::snprintf(sum, sizeof sum, " sum %08x%08x\n", hash[0], hash[1]);
    return std::string(text) + sum;
  }

  GeneratorError read() noexcept {
    char text[kMostBytes] = {};
    const ssize_t bytes = ::pread(file_, text, sizeof text - 1, 0);
    if (bytes < 0) return GeneratorError::file_system;
    long long seal = 0;
    long long ms = 0;
    unsigned region = 0;
    const int fields =
        std::sscanf(text, "snowflake mark 1 seal %19lld region %8u ms %19lld", &seal, &region, &ms);
    const std::string_view found(text, static_cast<size_t>(bytes));
    if (fields != 3 || found != line(seal, region, ms)) return GeneratorError::file_damaged;
    if (seal != seal_ || region != region_) return GeneratorError::file_of_another;
    mark_ms_ = ms;
    return GeneratorError::none;
  }

  bool put(int64_t mark_ms) noexcept {
    const std::string text = line(seal_, region_, mark_ms);
    const ssize_t bytes = ::pwrite(file_, text.data(), text.size(), 0);
    if (bytes >= 0 && bytes != static_cast<ssize_t>(text.size())) errno = ENOSPC;
    return bytes == static_cast<ssize_t>(text.size()) && ::fdatasync(file_) == 0;
  }

  // True if the path still refers to the locked file. If the file was moved or replaced, another
  // process can lock the file that is now at the path.
  bool is_in_place() const noexcept {
    struct stat mine {};
    struct stat there {};
    if (::fstat(file_, &mine) != 0 || ::stat(path_.c_str(), &there) != 0) return false;
    const bool same = mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
    if (!same) errno = ESTALE;
    return same;
  }

  // Flushes the directory, so that the name of a new file is durable.
  static bool sync_folder(const std::string& path) noexcept {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) return false;
    const bool synced = ::fsync(opened) == 0;
    ::close(opened);
    return synced;
  }

  int file_ = -1;
  std::string path_;
  int64_t seal_ = 0;
  uint32_t region_ = 0;
  int64_t mark_ms_ = 0;
};

}  // namespace snowflake
