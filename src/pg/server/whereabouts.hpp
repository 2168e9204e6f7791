// Identifies the place where a server runs. No configuration is needed.
//
//   machine  /etc/machine-id, which is empty in most containers. The id of a host or a virtual
//            machine never changes. A clone that was made by systemd's rules has another id.
//   disk     the identity that the kernel reports for the block device of the data directory: its
//            WWID, its serial number, or the UUID of a logical volume. Device numbers and names may
//            change with each boot, and the UUID of a file system is copied with the file system.
//            btrfs and ZFS have no single device, but name each snapshot and clone differently.
//   files    inode and birth time of global/pg_control. A server overwrites the file in place, and
//            each copy or restore creates a new file. Moving the directory and chown keep both.
#pragma once

#include "core/origin_fingerprint.hpp"

namespace snowflake::pg {

// Called when the postmaster loads the library, so that all processes inherit the result. If the
// postmaster does not load the library, a session finds the result at the first use.
void find_whereabouts();

// Returns the fingerprint of this server, including the system identifier.
OriginFingerprint present_origin_fingerprint();

}  // namespace snowflake::pg
