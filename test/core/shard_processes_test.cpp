// Kills processes at random moments while the processes claim ids. Each process maps the shared
// memory at another address.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "crowd.hpp"

namespace snowflake {
namespace {

constexpr size_t kJournals = 24;

struct Arena {
  Stage stage;
  Journal journals[kJournals];
};

class ShardProcesses : public testing::Test {
 protected:
  void SetUp() override {
    test_seed();  // before fork()
    fd_ = memfd_create("snowflake-test", MFD_CLOEXEC);
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(ftruncate(fd_, sizeof(Arena)), 0);
    arena_ = map();
    ASSERT_NE(arena_, nullptr);
    new (&arena_->stage) Stage{};
  }

  void TearDown() override {
    if (arena_ != nullptr) munmap(arena_, sizeof(Arena));
    if (fd_ >= 0) close(fd_);
  }

  pid_t start(size_t journal, const Plan& plan) {
    std::fflush(stdout);  // before fork() copies the buffer
    const pid_t pid = fork();
    if (pid != 0) return pid;
    alarm(90);  // in case the parent dies
    Arena* own = map();
    if (own == nullptr || own == arena_) _exit(3);
    claim_ids(own->stage, own->journals[journal], plan, Random(500 + journal));
    _exit(0);
  }

  static int wait_for(pid_t pid) {
    int status = -1;
    return waitpid(pid, &status, 0) == pid ? status : -1;
  }

  Stage& stage() { return arena_->stage; }
  Journal& journal(size_t i) { return arena_->journals[i]; }
  std::span<const Journal> journals(size_t count) const { return {arena_->journals, count}; }

 private:
  Arena* map() const {
    void* memory = mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<Arena*>(memory);
  }

  int fd_ = -1;
  Arena* arena_ = nullptr;
};

TEST_F(ShardProcesses, ShareCountersWithoutSharingIds) {
  constexpr size_t kClaimers = 4;
  const Plan plan;
  std::vector<pid_t> children;
  for (size_t i = 0; i < kClaimers; ++i) children.push_back(start(i, plan));
  const auto gaps =
      conduct(stage(), plan, Random(500), [&] { return stage().finished == kClaimers; });
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  for (size_t i = 0; i < kClaimers; ++i) EXPECT_EQ(journal(i).used, plan.quota);
  audit(stage(), plan, journals(kClaimers), gaps);
}

// A claim is one compare-and-swap, so a killed process leaves no partial claim and blocks no other
// process. Only the last claim of a killed process may be missing in its journal.
TEST_F(ShardProcesses, AKilledProcessLeavesNothingBehind) {
  constexpr size_t kSurvivors = 2;
  const Plan plan;
  Random random(600);
  pid_t survivors[kSurvivors];
  for (size_t i = 0; i < kSurvivors; ++i) survivors[i] = start(i, plan);

  size_t victim = kSurvivors;
  uint64_t lifetime = random.below(3000);
  pid_t pid = start(victim, plan);
  const auto gaps = conduct(stage(), plan, Random(601), [&] {
    if (journal(victim).used < lifetime) return false;
    kill(pid, SIGKILL);
    const int status = wait_for(pid);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    if (++victim == kJournals) return true;
    lifetime = random.below(3000);
    pid = start(victim, plan);
    return false;
  });
  for (const pid_t survivor : survivors) EXPECT_EQ(wait_for(survivor), 0);
  audit(stage(), plan, journals(kJournals), gaps);
}

}  // namespace
}  // namespace snowflake
