#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <thread>
#include <vector>

#include "generator_support.hpp"

namespace snowflake {
namespace {

using MarkFileTest = GeneratorTest;

template <class Body>
int in_child(Body body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(90);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(MarkFileTest, RefusesAFullDisk) {
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  const std::string before = content();
  const auto fill = [](rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  for (const rlim_t bytes : {0, 40}) {
    fill(bytes);
    EXPECT_EQ(refusal_of(generator).error, GeneratorError::file_system);
    EXPECT_EQ(FakeGenerator::create(path_ + ".old", kNarrow, 1).error, GeneratorError::file_system);
    EXPECT_NE(access((path_ + ".old").c_str(), F_OK), 0);
    setrlimit(RLIMIT_FSIZE, &unlimited);
  }
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(content().size(), before.size());
  id_of(generator);
}

TEST_F(MarkFileTest, OwnsItsFileAlone) {
  auto generator = std::make_unique<FakeGenerator>(path_, kNarrow, kRegion);
  const auto mint = [&] {
    FakeGenerator other(path_, kNarrow, kRegion);
    EXPECT_EQ(refusal_of(other).error, GeneratorError::file_in_use);
  };
  mint();
  EXPECT_EQ(in_child(mint), 0);
  EXPECT_EQ(FakeGenerator::create(path_, kNarrow, kRegion).error, GeneratorError::file_exists);
  generator.reset();
  EXPECT_EQ(error_of_open(), GeneratorError::none);
}

TEST_F(MarkFileTest, IsRefusedInAForkedChild) {
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  id_of(generator);
  const auto mint = [&] { EXPECT_EQ(refusal_of(generator).error, GeneratorError::forked); };
  EXPECT_EQ(in_child(mint), 0);
  id_of(generator);
}

TEST_F(MarkFileTest, RefusesAFileThatWasMovedOrReplaced) {
  FakeGenerator generator(path_, kNarrow, kRegion);
  pass_mark();
  const std::string text = content();
  ASSERT_EQ(rename(path_.c_str(), (path_ + ".old").c_str()), 0);
  EXPECT_EQ(refusal_of(generator).number, ENOENT);
  set_content(text);
  EXPECT_EQ(refusal_of(generator).number, ESTALE);
  EXPECT_EQ(content(), text);
  ASSERT_EQ(rename((path_ + ".old").c_str(), path_.c_str()), 0);
  id_of(generator);
}

TEST_F(MarkFileTest, RefusesADamagedFile) {
  const std::string whole = content();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    set_content(whole.substr(0, bytes));
    EXPECT_EQ(error_of_open(), GeneratorError::file_damaged) << bytes;
  }
  for (size_t i = 0; i < whole.size(); ++i)
    for (const char c : {'0', '1', '9', ' ', '-', '\n', '\0'}) {
      std::string changed = whole;
      if (changed[i] == c) continue;
      changed[i] = c;
      set_content(changed);
      EXPECT_EQ(error_of_open(), GeneratorError::file_damaged) << i << ' ' << +c;
    }
  for (const std::string& longer : {whole + "x", whole + whole, whole + std::string(5000, '\0')}) {
    set_content(longer);
    EXPECT_EQ(error_of_open(), GeneratorError::file_damaged);
  }
  set_content(whole);
  EXPECT_EQ(error_of_open(), GeneratorError::none);
}

TEST_F(MarkFileTest, RefusesTheWrongFile) {
  EXPECT_EQ(error_of_open(kNarrow, 2), GeneratorError::file_of_another);
  EXPECT_EQ(error_of_open(layout_from("41/2+2/5")), GeneratorError::file_of_another);
  EXPECT_EQ(error_of_open(kNarrow, 4), GeneratorError::invalid_argument);
  EXPECT_EQ(error_of_open(Layout{}), GeneratorError::invalid_argument);
  EXPECT_EQ(FakeGenerator(path_, kNarrow, kRegion, {.reserve_ms = -1}).status().error,
            GeneratorError::invalid_argument);
  EXPECT_EQ(FakeGenerator(path_ + "/", kNarrow, kRegion).status().number, ENOTDIR);
  EXPECT_EQ(FakeGenerator(folder_, kNarrow, kRegion).status().number, EISDIR);
  unlink(path_.c_str());
  EXPECT_EQ(error_of_open(), GeneratorError::file_missing);
}

TEST_F(MarkFileTest, RefusesAFileThatIsReadOnly) {
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0444), 0);
  const auto open_as_user = [&] {
    EXPECT_TRUE(geteuid() != 0 || seteuid(65534) == 0);
    const GeneratorStatus status = FakeGenerator(path_, kNarrow, kRegion).status();
    EXPECT_EQ(status.error, GeneratorError::file_system);
    EXPECT_EQ(status.number, EACCES);
  };
  EXPECT_EQ(in_child(open_as_user), 0);
}

// Adds an offset to the machine's clock, so that each run of a program can begin at another time.
struct ShiftedClocks : GeneratorClocks {
  static inline int64_t shift_ms;
  static int64_t wall_ms() noexcept { return GeneratorClocks::wall_ms() + shift_ms; }
  static int64_t offset_us() noexcept { return GeneratorClocks::offset_us() + shift_ms * 1000; }
};
constexpr GeneratorOptions kShort{.max_lead_ms = 20, .reserve_ms = 5, .max_wait_ms = 10'000};
constexpr Layout kWide = parse_layout("41/5+8/10", 0, kDefaultEpoch).layout;

// Stores minted ids in memory that the test shares with its child processes, so that the test can
// read the ids of a killed process.
struct Journal {
  static constexpr size_t kMost = 1 << 19;
  std::atomic<size_t> used;
  int64_t ids[kMost];
};

TEST_F(MarkFileTest, RepeatsNoIdAfterKills) {
  const std::string path = path_ + ".old";
  ASSERT_TRUE(Generator::create(path, kWide, 9, kShort));
  void* memory =
      mmap(nullptr, sizeof(Journal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Journal& journal = *new (memory) Journal;
  Random random(2);
  for (uint64_t run = 0; run < 12 * kEffort; ++run) {
    const auto shift_ms = static_cast<int64_t>(random.below(30)) - 20;
    const size_t enough = journal.used + random.between(1, 4000);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      alarm(90);
      ShiftedClocks::shift_ms = shift_ms;
      BasicGenerator<ShiftedClocks> generator(path, kWide, 9, kShort);
      int64_t some[16];
      while (journal.used < enough + 4000) {
        if (!generator.next_ids(7, some)) _exit(1);
        for (size_t i = 0; i < 16; ++i) journal.ids[journal.used + i] = some[i];
        journal.used += 16;
      }
      pause();
    }
    int status = 0;
    while (journal.used < enough) {
      ASSERT_EQ(waitpid(child, &status, WNOHANG), 0) << "refused in run " << run;
      usleep(100);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  EXPECT_GT(journal.used, 12 * kEffort * 1000);
  EXPECT_TRUE(all_distinct({journal.ids, journal.ids + journal.used}));
  munmap(memory, sizeof(Journal));
}

TEST_F(MarkFileTest, SharesItsShardsBetweenThreads) {
  const std::string path = path_ + ".old";
  ASSERT_TRUE(Generator::create(path, kWide, 9, kShort));
  Generator generator(path, kWide, 9, kShort);
  std::vector<std::vector<int64_t>> minted(4, std::vector<int64_t>(20'000 * kEffort));
  std::vector<std::thread> threads;
  for (auto& ids : minted)
    threads.emplace_back([&generator, &ids] {
      for (int64_t& id : ids) ASSERT_TRUE(generator.next_id(7, id));
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> all;
  for (const auto& ids : minted) {
    EXPECT_TRUE(strictly_increasing(ids));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  EXPECT_TRUE(all_distinct(all));
  const auto last = static_cast<uint64_t>(*std::max_element(all.begin(), all.end()));
  EXPECT_FALSE(Disk::overlapped);
  EXPECT_GT(mark_in(Disk::content), kWide.ms_of_tick(kWide.tick_of(last)));
}

}  // namespace
}  // namespace snowflake
