// Where a database last minted, in one number: a few bits each of the system identifier, the
// machine, the disk and the files. A copy of the data directory has the number of its original, and
// is somewhere else.
//
// A part that is not known where the server runs (no machine id in a container, a disk without a
// name) is 0 and says nothing: neither that it is the same, nor that it is another.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

struct Fingerprint {
  uint16_t system;   // below 2^15, and known wherever the rest is
  uint16_t machine;  // 0: not known
  uint16_t disk;     // likewise
  uint16_t files;    // likewise

  bool operator==(const Fingerprint&) const = default;
};

// A part from a hash of what is known: never 0. Two that differ have the same part once in 65535
// times (the system: 32767).
constexpr uint16_t system_part(uint64_t hash) {
  return static_cast<uint16_t>(1 + hash % 0x7fff);
}
constexpr uint16_t fingerprint_part(uint64_t hash) {
  return static_cast<uint16_t>(1 + hash % 0xffff);
}

// As a sequence keeps it: 0 to INT64_MAX; 0 where nothing has been remembered yet.
constexpr int64_t pack(const Fingerprint& f) {
  return static_cast<int64_t>(uint64_t{f.system} << 48 | uint64_t{f.machine} << 32 |
                              uint64_t{f.disk} << 16 | f.files);
}
constexpr Fingerprint unpack(int64_t packed) {
  const auto bits = static_cast<uint64_t>(packed);
  return {static_cast<uint16_t>(bits >> 48 & 0x7fff), static_cast<uint16_t>(bits >> 32),
          static_cast<uint16_t>(bits >> 16), static_cast<uint16_t>(bits)};
}

// What is not where it was when the database last minted.
struct Moved {
  bool machine;
  bool disk;
  bool files;

  // Any of them makes it a copy: files are copied from disk to disk, disks and machines are cloned
  // with their files.
  constexpr bool any() const { return machine || disk || files; }
};

// Another system identifier is what initdb made: pg_upgrade brought the database there, which is
// no copy; nothing has moved then.
constexpr Moved moved(const Fingerprint& remembered, const Fingerprint& present) {
  if (remembered.system != present.system) return {};
  const auto differ = [](uint16_t a, uint16_t b) { return a != 0 && b != 0 && a != b; };
  return {differ(remembered.machine, present.machine), differ(remembered.disk, present.disk),
          differ(remembered.files, present.files)};
}

// What to remember where nothing has moved, or what has was accepted: the present, with what is
// not known of it at the moment.
constexpr Fingerprint merged(const Fingerprint& remembered, const Fingerprint& present) {
  if (remembered.system != present.system) return present;
  const auto either = [](uint16_t was, uint16_t is) { return is != 0 ? is : was; };
  return {present.system, either(remembered.machine, present.machine),
          either(remembered.disk, present.disk), either(remembered.files, present.files)};
}

}  // namespace snowflake
