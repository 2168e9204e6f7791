#include "pg/server/session_start.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// Returns the start of this process in kernel ticks since boot, or 0 if /proc is not mounted. The
// process start is field 22 of /proc/self/stat. Field 2 of /proc/self/stat is the name of the
// program in parentheses, and may contain spaces.
int64_t process_start() {
  char text[1024];
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = '\0';
  const char* field = strrchr(text, ')');
  for (int number = 2; field != nullptr && number < 22; ++number) field = strchr(field + 1, ' ');
  return field == nullptr ? 0 : std::strtoll(field + 1, nullptr, 10);
}

}  // namespace

SessionStart session_start() {
  static constinit SessionStart start{};
  if (IsParallelWorker()) return {};
  if (start.wall_us == 0) start = {process_start(), MyStartTimestamp};
  return start;
}

}  // namespace snowflake::pg
