// Simulates another machine, disk and clock source for a server into which a test preloads this
// library. In place of /etc/machine-id, /proc/cpuinfo, and files about disks and the clock source
// in /sys, the server reads files in the directory $SNOWFLAKE_MACHINE.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static const char* instead_of(const char* path, char* buffer, size_t size) {
  const char* directory = getenv("SNOWFLAKE_MACHINE");
  if (directory == NULL) return path;
  if (strcmp(path, "/etc/machine-id") == 0)
    snprintf(buffer, size, "%s/machine-id", directory);
  else if (strncmp(path, "/sys/dev/block/", 15) == 0)
    snprintf(buffer, size, "%s/disk%s", directory, strchr(path + 15, '/'));
  else if (strstr(path, "/current_clocksource") != NULL)
    snprintf(buffer, size, "%s/clocksource", directory);
  else if (strcmp(path, "/proc/cpuinfo") == 0)
    snprintf(buffer, size, "%s/cpuinfo", directory);
  else
    return path;
  return buffer;
}

int open(const char* path, int flags, ...) {
  char buffer[4096];
  mode_t mode = 0;
  if (flags & (O_CREAT | __O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = (mode_t)va_arg(arguments, int);
    va_end(arguments);
  }
  return (int)syscall(SYS_openat, AT_FDCWD, instead_of(path, buffer, sizeof(buffer)), flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));
