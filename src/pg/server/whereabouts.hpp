// Identifies where this server runs, without any set-up.
//
//   machine  /etc/machine-id. Empty in most containers; of a host or a virtual machine it stays the
//            same over its life, and is another one in a clone that was made as systemd wants it.
//   disk     what the kernel calls the block device below the data directory: its WWID, its serial
//            number, or the UUID of a logical volume. Device numbers and names may change with each
//            boot, and a file system's UUID is copied with it; btrfs and ZFS, which have no one
//            device, name each snapshot and clone by themselves.
//   files    inode and time of birth of global/pg_control, which a server overwrites in place and
//            everybody who copies or restores makes anew. Neither a move of the directory nor chown
//            changes them.
#pragma once

#include "core/origin_fingerprint.hpp"

namespace snowflake::pg {

// At server start, in the data directory.
void find_whereabouts();

// With the system identifier of this server.
OriginFingerprint present_origin_fingerprint();

}  // namespace snowflake::pg
