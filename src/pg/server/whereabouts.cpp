#include "pg/server/whereabouts.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cctype>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// The system identifier of the server is read later, when the control file exists.
constinit OriginFingerprint whereabouts{};
constinit bool is_found = false;

constexpr char kControlFile[] = "global/pg_control";
constexpr decltype(statfs::f_type) kZfsMagic = 0x2fc12fc1;

uint64_t hash_of(const void* bytes, size_t size) {
  return hash_bytes_extended(static_cast<const unsigned char*>(bytes), static_cast<int>(size), 0);
}

struct Line {
  char text[256];
  size_t size;  // without trailing white space

  bool is_machine_id() const {
    return size == 32 &&
           std::all_of(text, text + size, [](unsigned char c) { return isxdigit(c); });
  }
};

Line read_line(const char* path) {
  Line line{};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return line;
  const ssize_t size = read(file, line.text, sizeof(line.text));
  close(file);
  line.size = size < 0 ? 0 : static_cast<size_t>(size);
  while (line.size > 0 && isspace(static_cast<unsigned char>(line.text[line.size - 1])))
    --line.size;
  return line;
}

uint16_t machine() {
  const Line id = read_line("/etc/machine-id");
  return id.is_machine_id() ? fingerprint_part(hash_of(id.text, id.size)) : 0;
}

uint16_t block_device(unsigned major, unsigned minor) {
  for (const char* name : {"dm/uuid", "wwid", "device/wwid", "serial", "device/serial", "../wwid",
                           "../device/wwid", "../serial", "../device/serial"}) {
    char path[128];
    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major, minor, name);
    const Line called = read_line(path);
    if (called.size > 0) return fingerprint_part(hash_of(called.text, called.size));
  }
  return 0;
}

uint16_t disk(unsigned major, unsigned minor) {
  struct statfs system {};
  if (statfs(kControlFile, &system) == 0 &&
      (system.f_type == BTRFS_SUPER_MAGIC || system.f_type == kZfsMagic))
    return fingerprint_part(hash_of(&system.f_fsid, sizeof(system.f_fsid)));
  return block_device(major, minor);
}

}  // namespace

void find_whereabouts() {
  if (is_found) return;
  is_found = true;
  whereabouts.machine = machine();
  struct statx control {};
  if (statx(AT_FDCWD, kControlFile, 0, STATX_INO | STATX_BTIME, &control) != 0) return;
  const uint64_t files[] = {control.stx_ino, static_cast<uint64_t>(control.stx_btime.tv_sec),
                            control.stx_btime.tv_nsec};
  whereabouts.files = fingerprint_part(hash_of(files, sizeof(files)));
  whereabouts.disk = disk(control.stx_dev_major, control.stx_dev_minor);
}

OriginFingerprint present_origin_fingerprint() {
  find_whereabouts();
  OriginFingerprint present = whereabouts;
  const uint64_t system = GetSystemIdentifier();
  present.system = system_part(hash_of(&system, sizeof(system)));
  return present;
}

}  // namespace snowflake::pg
