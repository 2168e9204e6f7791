// Identifies where this server runs, without any set-up.
//
//   machine  /etc/machine-id. Empty in most containers; of a host or a virtual machine it stays the
//            same over its life, and is another one in a clone that was made as systemd wants it.
//   disk     what the kernel calls the block device below the data directory: its WWID, its serial
//            number, or the UUID of a logical volume. Device numbers and names may change with each
//            boot, and a file system's UUID is copied with it; btrfs and ZFS, which have no one
//            device, name each snapshot and clone by themselves.
//   files    inode and birth time of global/pg_control. A server overwrites the file in place; each
//            copy or restore creates a new one. Moving the directory and chown keep both.
#pragma once

#include "core/origin_fingerprint.hpp"

namespace snowflake::pg {

// Called when the postmaster loads the library, so that all processes inherit the result. Otherwise
// a session finds it at its first use.
void find_whereabouts();

// Returns the fingerprint of this server, including its system identifier.
OriginFingerprint present_origin_fingerprint();

}  // namespace snowflake::pg
