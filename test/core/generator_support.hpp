// Helpers for tests of the generator: a clock that tests set, and a disk that can fail. Only one
// translation unit may include generator_support.hpp, because this header replaces functions of the
// C library.
#pragma once

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "core/generator.hpp"
#include "support.hpp"

namespace snowflake {

// Simulates a disk that loses everything after the last fdatasync() in a power failure.
struct Disk {
  static inline std::string content;
  static inline int error = 0;  // 0: calls succeed
  static inline int folder_syncs = 0;
  static inline std::atomic<int> writers{0};
  static inline bool overlapped = false;

  static std::string of(int file) {
    char text[512];
    const ssize_t bytes = pread(file, text, sizeof text, 0);
    return {text, static_cast<size_t>(std::max<ssize_t>(bytes, 0))};
  }
};

}  // namespace snowflake

extern "C" int fdatasync(int file) {
  if (snowflake::Disk::error != 0) return errno = snowflake::Disk::error, -1;
  if (++snowflake::Disk::writers != 1) snowflake::Disk::overlapped = true;
  usleep(20);  // lets other threads arrive
  snowflake::Disk::content = snowflake::Disk::of(file);
  --snowflake::Disk::writers;
  return 0;
}
extern "C" int fsync(int file) {
  struct stat found {};
  if (fstat(file, &found) == 0 && S_ISDIR(found.st_mode)) ++snowflake::Disk::folder_syncs;
  return 0;
}

namespace snowflake {

inline constexpr Layout kNarrow = parse_layout("41/2+2/4", 0, kDefaultEpoch).layout;
inline constexpr int64_t kStart = kDefaultEpoch + 1'000'000'000;

// Simulates a clock that moves only if a call sleeps or a test moves the clock. The function step()
// moves only the wall clock, not the time since boot.
struct FakeClocks {
  static inline int64_t now_ms, boot_ms;

  static void start() { now_ms = kStart, boot_ms = 5000; }
  static void step(int64_t ms) { now_ms += ms; }
  static void pass(int64_t ms) { now_ms += ms, boot_ms += ms; }

  static int64_t wall_ms() noexcept { return now_ms; }
  static int64_t boot_us() noexcept { return boot_ms * 1000; }
  static int64_t offset_us() noexcept { return (now_ms - boot_ms) * 1000; }
  static void sleep_ms(int64_t ms) noexcept { pass(ms); }
};
using FakeGenerator = BasicGenerator<FakeClocks>;

class GeneratorTest : public testing::Test {
 protected:
  void SetUp() override {
    test_seed();
    FakeClocks::start();
    Disk::error = 0;
    char name[] = "/tmp/snowflake-generator.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/mark";
    ASSERT_TRUE(FakeGenerator::create(path_, kNarrow, kRegion));
  }
  void TearDown() override {
    unlink(path_.c_str());
    unlink((path_ + ".old").c_str());
    rmdir(folder_.c_str());
  }

  // Moves the simulated clock ahead until a new run of the program can mint ids.
  static void pass_mark() { FakeClocks::pass(2001); }

  std::string content() const {
    const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const std::string text = Disk::of(file);
    close(file);
    return text;
  }
  void set_content(std::string_view text) const {
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(text.size())), 0);
    close(file);
  }
  GeneratorError error_of_open(const Layout& layout = kNarrow, uint32_t region = kRegion) const {
    return FakeGenerator(path_, layout, region).status().error;
  }
  static int64_t mark_in(const std::string& text) {
    return std::atoll(text.c_str() + text.find(" ms ") + 4);
  }

  static constexpr uint32_t kRegion = 3;
  std::string folder_, path_;
};

inline int64_t id_of(FakeGenerator& generator, uint32_t shard = 1) {
  int64_t id = 0;
  const GeneratorStatus status = generator.next_id(shard, id);
  EXPECT_TRUE(status) << describe(status.error);
  return id;
}

inline GeneratorStatus refusal_of(FakeGenerator& generator, uint32_t shard = 1) {
  int64_t id = -1;
  const GeneratorStatus status = generator.next_id(shard, id);
  EXPECT_FALSE(status);
  EXPECT_EQ(id, -1);
  return status;
}

}  // namespace snowflake
