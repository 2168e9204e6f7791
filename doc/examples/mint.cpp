// Mints and decodes ids without PostgreSQL, in the layout of a database. doc/core.md lists its
// limits.
//
//   g++ -std=c++20 -O2 $(pkg-config --cflags snowflake-core) mint.cpp -o mint
//   ./mint SEAL REGION SHARD COUNT      mints
//   ./mint SEAL ID                      decodes
//
// SEAL is `SELECT last_value FROM snowflake.seal`: layout, tick and epoch in one number.
#include <snowflake/clock.hpp>
#include <snowflake/layout.hpp>
#include <snowflake/seal.hpp>
#include <snowflake/shard.hpp>

#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

namespace {

// Mints in one region, which no other program may use. Thread safe.
class Minter {
 public:
  // REQUIRES check(layout) == LayoutError::none and region < layout.regions().
  Minter(const snowflake::Layout& layout, uint32_t region)
      : layout_(layout), region_(region), words_(new snowflake::Shard[layout.shards()]()) {
    // An earlier run may have used up this tick.
    const uint64_t begin = layout.first_position(tick_now() + 1);
    for (uint32_t shard = 0; shard < layout.shards(); ++shard) words_[shard].raise_floor(begin);
  }

  // The next id of a shard, or none if the layout has run out. Waits for the clock if the ids of
  // the tick are used up, or if the clock went back. REQUIRES shard < layout.shards().
  std::optional<uint64_t> next_id(uint32_t shard) {
    for (;;) {
      const uint64_t now = tick_now();
      if (now > layout_.last_minted_tick()) return {};
      // No lead: otherwise skipping one tick after a restart would not be enough.
      const snowflake::Claim claim = words_[shard].claim(
          layout_, {now, /* lead */ 0, layout_.end_position(), /* spread */ 0}, 1);
      if (claim.outcome == snowflake::Outcome::claimed)
        return layout_.id(claim.first, region_, shard);
      if (claim.outcome == snowflake::Outcome::exhausted) return {};
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

 private:
  uint64_t tick_now() const {
    const int64_t ms = snowflake::wall_clock_ms();
    if (ms >= layout_.epoch_ms) return layout_.tick_at(ms);
    std::fputs("the clock is before the epoch\n", stderr);
    std::exit(1);
  }

  const snowflake::Layout layout_;
  const uint32_t region_;
  const std::unique_ptr<snowflake::Shard[]> words_;
};

template <class Number>
Number number_or_exit(const char* text, Number end, const char* what) {
  Number number{};
  const auto [stop, error] = std::from_chars(text, text + std::strlen(text), number);
  if (error == std::errc{} && *stop == '\0' && stop != text && number < end) return number;
  std::fprintf(stderr, "%s: no %s\n", text, what);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) {
    std::fputs("usage: mint SEAL REGION SHARD COUNT | mint SEAL ID\n", stderr);
    return 2;
  }
  const auto layout = snowflake::layout_of(number_or_exit<int64_t>(argv[1], INT64_MAX, "seal"));
  if (const auto error = snowflake::check(layout); error != snowflake::LayoutError::none) {
    std::fprintf(stderr, "%s is no seal: %s\n", argv[1], snowflake::describe(error));
    return 2;
  }
  if (argc == 3) {
    const auto id = number_or_exit<uint64_t>(argv[2], layout.last_id() + 1, "id of this layout");
    std::printf("%" PRId64 " %u %u %u\n", layout.ms_of_tick(layout.tick_of(id)),
                layout.region_of(id), layout.shard_of(id), layout.sequence_of(id));
    return 0;
  }
  Minter minter(layout,
                number_or_exit<uint32_t>(argv[2], layout.regions(), "region of this layout"));
  const auto shard = number_or_exit<uint32_t>(argv[3], layout.shards(), "shard of this layout");
  for (auto count = number_or_exit<uint64_t>(argv[4], UINT64_MAX, "count"); count > 0; --count) {
    const auto id = minter.next_id(shard);
    if (!id) {
      std::fputs("the layout has run out\n", stderr);
      return 1;
    }
    std::printf("%" PRIu64 "\n", *id);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
