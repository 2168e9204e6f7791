#include "resolver.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace snowflake::lease {

namespace {

// The answer of the child process is shorter than PIPE_BUF, so that write() sends the answer
// atomically.
struct Found {
  int error;
  Addresses addresses;
};

struct Child {
  pid_t pid;
  int pipe;
};
constinit Child child{0, -1};

void copy_addresses(const addrinfo* list, Addresses* addresses) {
  for (; list != nullptr && addresses->count < Addresses::kMost; list = list->ai_next) {
    char* text = addresses->text[addresses->count];
    if (getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof(addresses->text[0]), nullptr, 0,
                    NI_NUMERICHOST) == 0)
      ++addresses->count;
  }
}

Found look_up(const char* host, int flags) {
  Found found{};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  found.error = getaddrinfo(host, nullptr, &hints, &list);
  if (found.error != 0) return found;
  copy_addresses(list, &found.addresses);
  freeaddrinfo(list);
  return found;
}

// Signals stay blocked until the child process has removed PostgreSQL's signal handlers.
[[noreturn]] void run_child(const char* host, int pipe, const sigset_t* mask) {
  for (int signal = 1; signal < NSIG; ++signal) (void)::signal(signal, SIG_DFL);
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  PGSharedMemoryDetach();
  const int nowhere = open("/dev/null", O_RDWR);
  for (int standard = 0; standard < 3; ++standard) (void)dup2(nowhere, standard);
  (void)sigprocmask(SIG_SETMASK, mask, nullptr);
  const Found found = look_up(host, 0);
  const bool written = write(pipe, &found, sizeof(found)) == static_cast<ssize_t>(sizeof(found));
  _exit(written ? 0 : 1);
}

bool start_child(const char* host) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) run_child(host, ends[1], &before);
  const int failure = errno;
  child = {pid < 0 ? 0 : pid, ends[0]};
  (void)sigprocmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  if (pid > 0) return true;
  stop_resolving();
  errno = failure;
  return false;
}

// Returns null if the child process has sent its answer, and otherwise a text with the reason.
const char* take_answer(const Deadline& deadline, Found* found) {
  for (;;) {
    const char* failure = wait_for(child.pipe, WL_SOCKET_READABLE, deadline);
    if (failure != nullptr) return failure;
    const ssize_t size = ::read(child.pipe, found, sizeof(*found));
    if (size == static_cast<ssize_t>(sizeof(*found))) return nullptr;
    // EAGAIN means that another event woke the lease worker before the child process answered.
    if (size >= 0 || (errno != EAGAIN && errno != EINTR)) return "ended without a result";
  }
}

}  // namespace

void stop_resolving() {
  if (child.pipe >= 0) close(child.pipe);
  if (child.pid > 0) {
    kill(child.pid, SIGKILL);
    // Waits at most 0.1 s, because the kernel may be unable to end a child process whose file
    // system hangs.
    for (int tries = 0; tries < 100 && waitpid(child.pid, nullptr, WNOHANG) == 0; ++tries)
      pg_usleep(1'000);
  }
  child = {0, -1};
}

bool resolve(const char* host, const Deadline& deadline, Addresses* addresses, char* why,
             size_t why_size) {
  Found found = look_up(host, AI_NUMERICHOST);
  const char* failure = nullptr;
  if (found.error != 0) {
    if (!start_child(host)) {
      snprintf(why, why_size, "could not start a process to look up host name \"%s\": %s", host,
               strerror(errno));
      return false;
    }
    failure = take_answer(deadline, &found);
    stop_resolving();
  }
  if (failure != nullptr) {
    snprintf(why, why_size, "the look-up of host name \"%s\" %s", host, failure);
    return false;
  }
  if (found.error != 0 || found.addresses.count == 0) {
    snprintf(why, why_size, "host name \"%s\" has no address: %s", host,
             found.error == 0 ? "no usable address was found" : gai_strerror(found.error));
    return false;
  }
  *addresses = found.addresses;
  return true;
}

}  // namespace snowflake::lease
