// A disk of the WAL that a test makes stand still, preloaded into a server: as long as a file is
// there, no fdatasync() returns.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int fdatasync(int file) {
  const char* sign = getenv("SNOWFLAKE_DISK");
  while (sign != NULL && access(sign, F_OK) == 0) usleep(10000);
  int (*true_fdatasync)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return true_fdatasync(file);
}
