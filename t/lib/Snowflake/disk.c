// Stalls the disk of a server into which a test preloads this library. While the file
// $SNOWFLAKE_STALLED exists, fsync() and fdatasync() wait, and signals do not end the wait.

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char* path = getenv("SNOWFLAKE_STALLED");
  const struct timespec pause = {0, 10000000};
  while (path != NULL && access(path, F_OK) == 0) nanosleep(&pause, NULL);
}

int fdatasync(int file) {
  wait_for_disk();
  return (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
  wait_for_disk();
  return (int)syscall(SYS_fsync, file);
}
