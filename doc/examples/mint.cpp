// Mints and decodes ids without PostgreSQL, in the layout of a database. The page doc/core.md lists
// the limits of this program.
//
//   g++ -std=c++20 -O2 -pthread $(pkg-config --cflags snowflake-core) mint.cpp -o mint
//   ./mint SEAL REGION FILE                 makes the mark file of a region, once
//   ./mint SEAL REGION FILE SHARD COUNT     mints
//   ./mint SEAL ID                          decodes
//
// SEAL is `SELECT last_value FROM snowflake.seal`: layout, tick and epoch in one number.
#include <snowflake/generator.hpp>
#include <snowflake/layout.hpp>
#include <snowflake/seal.hpp>

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <class Number>
Number number_or_exit(const char* text, Number end, const char* what) {
  Number number{};
  const auto [stop, error] = std::from_chars(text, text + std::strlen(text), number);
  if (error == std::errc{} && *stop == '\0' && stop != text && number < end) return number;
  std::fprintf(stderr, "%s: no %s\n", text, what);
  std::exit(2);
}

void exit_if_refused(snowflake::GeneratorStatus status) {
  if (status) return;
  std::fprintf(stderr, "%s (%" PRId64 ")\n", snowflake::describe(status.error), status.number);
  std::exit(1);
}

void decode(const snowflake::Layout& layout, uint64_t id) {
  std::printf("%" PRId64 " %u %u %u\n", layout.ms_of_tick(layout.tick_of(id)), layout.region_of(id),
              layout.shard_of(id), layout.sequence_of(id));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4 && argc != 6) {
    std::fputs("usage: mint SEAL REGION FILE [SHARD COUNT] | mint SEAL ID\n", stderr);
    return 2;
  }
  const auto layout = snowflake::layout_of(number_or_exit<int64_t>(argv[1], INT64_MAX, "seal"));
  if (const auto error = snowflake::check(layout); error != snowflake::LayoutError::none) {
    std::fprintf(stderr, "%s is no seal: %s\n", argv[1], snowflake::describe(error));
    return 2;
  }
  if (argc == 3) {
    decode(layout, number_or_exit<uint64_t>(argv[2], layout.last_id() + 1, "id of this layout"));
    return 0;
  }
  const auto region = number_or_exit<uint32_t>(argv[2], layout.regions(), "region of this layout");
  if (argc == 4) {
    exit_if_refused(snowflake::Generator::create(argv[3], layout, region));
    return 0;
  }
  const auto shard = number_or_exit<uint32_t>(argv[4], layout.shards(), "shard of this layout");
  const auto count = number_or_exit<uint64_t>(argv[5], UINT64_MAX, "count");
  snowflake::Generator generator(argv[3], layout, region);
  exit_if_refused(generator.status());
  for (uint64_t minted = 0; minted < count; ++minted) {
    int64_t id;
    exit_if_refused(generator.next_id(shard, id));
    std::printf("%" PRId64 "\n", id);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
