// The origin fingerprint shows where a database last minted: hashes of the system identifier, the
// machine, the disk and the files. A copied data directory still contains the fingerprint of the
// original server. A server that runs in a copied data directory has a different fingerprint than
// the original server.
//
// Some parts of the fingerprint may be missing, such as the machine id in a container or the name
// of a disk. A missing part of the fingerprint is stored as 0, and moved() does not compare it.
#pragma once

#ifdef POSTGRES_H
#error "the core knows no PostgreSQL: include core headers before postgres.h"
#endif

#include <cstdint>

namespace snowflake {

struct OriginFingerprint {
  uint16_t system;   // less than 2^14
  uint16_t machine;  // 0: not available
  uint16_t disk;     // 0: not available
  uint16_t files;    // 0: not available

  bool operator==(const OriginFingerprint&) const = default;
};

// Each available part of a fingerprint is a hash that is not 0. Two different values have the same
// hash with probability 1/65535, or 1/16382 for the system identifier.
constexpr uint16_t system_part(uint64_t hash) {
  return static_cast<uint16_t>(1 + hash % 0x3ffe);
}
constexpr uint16_t fingerprint_part(uint64_t hash) {
  return static_cast<uint16_t>(1 + hash % 0xffff);
}

// Encodes a fingerprint as the integer that a sequence stores. The integer 0 means that the
// database has minted no id yet. The result of pack() is less than half of INT64_MAX, because
// monitoring tools warn about sequences near their maximum.
constexpr int64_t pack(const OriginFingerprint& f) {
  return static_cast<int64_t>(uint64_t{f.system} << 48 | uint64_t{f.machine} << 32 |
                              uint64_t{f.disk} << 16 | f.files);
}
constexpr OriginFingerprint unpack(int64_t packed) {
  const auto bits = static_cast<uint64_t>(packed);
  return {static_cast<uint16_t>(bits >> 48 & 0x3fff), static_cast<uint16_t>(bits >> 32),
          static_cast<uint16_t>(bits >> 16), static_cast<uint16_t>(bits)};
}

struct Moved {
  bool machine;
  bool disk;
  bool files;

  // A database counts as a clone if its machine, disk or files differ from those on which it last
  // minted. Files can be copied between disks, and disks and machines can be cloned with their
  // files.
  constexpr bool any() const { return machine || disk || files; }
};

// A different system identifier shows that pg_upgrade moved the database into a new cluster. An
// upgraded database is not a clone, so moved() does not compare its machine, disk and files.
constexpr Moved moved(const OriginFingerprint& remembered, const OriginFingerprint& present) {
  if (remembered.system != present.system) return {};
  const auto differ = [](uint16_t a, uint16_t b) { return a != 0 && b != 0 && a != b; };
  return {differ(remembered.machine, present.machine), differ(remembered.disk, present.disk),
          differ(remembered.files, present.files)};
}

// Combines the fingerprint that the database stores (`remembered`) with the fingerprint of this
// server (`present`). The database stores the combined fingerprint if moved() finds no change, if
// the server uses leases, or in accept_clone(). If a part of the fingerprint is not available now,
// the stored value of the part is kept.
constexpr OriginFingerprint merged(const OriginFingerprint& remembered,
                                   const OriginFingerprint& present) {
  if (remembered.system != present.system) return present;
  const auto either = [](uint16_t was, uint16_t is) { return is != 0 ? is : was; };
  return {present.system, either(remembered.machine, present.machine),
          either(remembered.disk, present.disk), either(remembered.files, present.files)};
}

}  // namespace snowflake
