// Changes the wall clock of a server into which a test preloads this library. The test sets the
// server's clock to the kernel's clock plus an offset, or stops the server's clock. The library
// simulates whether the kernel reports a synchronized clock. The library does not change the time
// since boot and the monotonic clock.
//
// The functions of this library must not allocate memory or take a lock. PostgreSQL reads the clock
// in its handler of SIGALRM, which may interrupt malloc(). The offset of the clock is in mapped
// memory, because reading a file at each call would be slow.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

// Snowflake::Clock writes this structure into a mapped file while servers run.
struct Setting {
  int64_t offset_ns;
  int64_t frozen_ns;     // the time since 1970 that the stopped clock shows, or 0 if the clock runs
  int64_t synchronized;  // clock state: 0 = from the kernel, 1 = synchronized, 2 = unsynchronized
  int64_t late_ns;       // the delay of the kernel's timer ticks and of the coarse clock
};

static const volatile struct Setting* setting;
static int (*true_clock)(clockid_t, struct timespec*);

// If the file with the clock's settings is missing, the server must not start, because a test with
// the real clock could pass.
__attribute__((constructor)) static void initialize(void) {
  const char* path = getenv("SNOWFLAKE_CLOCK");
  const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  void* page = mmap(NULL, sizeof(struct Setting), PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) abort();
  close(file);
  setting = page;
  true_clock = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec* at) {
  if (true_clock == NULL) initialize();
  const int result = true_clock(clock, at);
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  const int64_t frozen = setting->frozen_ns;
  int64_t ns = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec + setting->offset_ns;
  if (clock == CLOCK_REALTIME_COARSE) ns -= setting->late_ns;
  if (frozen != 0) ns = frozen;
  at->tv_sec = (time_t)(ns / 1000000000);
  at->tv_nsec = (long)(ns % 1000000000);
  return 0;
}

int gettimeofday(struct timeval* restrict at, void* restrict zone) {
  (void)zone;
  struct timespec now;
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return result;
}

int adjtimex(struct timex* kernel) {
  static int (*true_adjtimex)(struct timex*);
  if (true_adjtimex == NULL) true_adjtimex = (int (*)(struct timex*))dlsym(RTLD_NEXT, "adjtimex");
  const int state = true_adjtimex(kernel);
  if (setting == NULL || setting->synchronized == 0) return state;
  const int is = setting->synchronized == 1;
  kernel->status = is ? STA_PLL | STA_NANO : STA_UNSYNC | STA_NANO;
  kernel->offset = 0;
  kernel->esterror = is ? 500 : 16000000;
  kernel->maxerror = is ? 5000 : 16000000;
  return is ? TIME_OK : TIME_ERROR;
}

time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
