// Identifies the machine, disk and files of a server without any configuration.
//
//  - The machine is identified by /etc/machine-id, which is empty in most containers. The id of a
//    host or a virtual machine never changes. A clone of a machine gets a new id only if
//    /etc/machine-id was emptied or removed, as the documentation of systemd requires.
//
//  - The disk is identified by the WWID or serial number of the data directory's block device, or
//    by the UUID of a logical volume. Device numbers and names are not used, because they may
//    change with each boot. The UUID of a file system is not used, because the UUID is copied with
//    the file system. On btrfs and ZFS, the disk is identified by `f_fsid` of statfs(). Each
//    snapshot or clone of a btrfs or ZFS file system has a different `f_fsid`.
//
//  - The data directory is identified by the inode and birth time of its file global/pg_control,
//    which differ in each copy of the directory. The server overwrites pg_control in place, and
//    each copy or restore creates a new file. If the data directory is renamed or gets another
//    owner, the inode and the birth time stay the same.
#pragma once

#include "core/origin_fingerprint.hpp"

namespace snowflake::pg {

// Reads the identity of the machine, of the disk and of the data directory's files
// (global/pg_control) once. If the library is preloaded, the postmaster calls find_whereabouts(),
// so that child processes inherit the identity of machine, disk and files. If the library is not
// preloaded, each session calls find_whereabouts() when it first needs the origin fingerprint (hash
// of machine, disk and files).
void find_whereabouts();

OriginFingerprint present_origin_fingerprint();

}  // namespace snowflake::pg
