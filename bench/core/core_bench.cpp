// Measures the core without PostgreSQL. Measures the two operations that every generator of ids
// needs: a clock read and a compare-and-swap. The benchmarks that mint ids read the clock through
// the class TickClock, as next_id() does.
//
// The benchmark `kernel_id` reads the kernel's clock for every id. On a machine without a usable
// time stamp counter, next_id() reads the kernel's clock for every id.
//
// Every benchmark counts an id as one item. All threads share one shard counter (`_shared`), or
// each thread has its own shard counter (`_own`). The class Meter does not use times from the
// benchmark library. Only some releases of the benchmark library divide a time by the number of
// threads.

#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <vector>

#include "core/clock.hpp"
#include "core/layout.hpp"
#include "core/shard.hpp"
#include "core/tick_clock.hpp"

// Counts how often the process allocates memory.
extern "C" void* __libc_malloc(size_t size);
static std::atomic<uint64_t> allocations;
extern "C" void* malloc(size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}

namespace {

using namespace snowflake;

constexpr Layout kLayout = parse_layout("instagram", 0, kDefaultEpoch).layout;
constexpr int kThreads = 64;

class Meter {
 public:
  void report(benchmark::State& state, int64_t items) const {
    state.counters["allocations"] = static_cast<double>(allocations.load() - allocations_);
    state.counters["items"] = static_cast<double>(items);
    state.counters["cpu_ns"] = static_cast<double>(now(CLOCK_THREAD_CPUTIME_ID) - cpu_);
    state.counters["wall_ns"] = {static_cast<double>(now(CLOCK_MONOTONIC) - wall_),
                                 benchmark::Counter::kAvgThreads};
  }

 private:
  static int64_t now(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }
  uint64_t allocations_ = allocations.load();
  int64_t cpu_ = now(CLOCK_THREAD_CPUTIME_ID);
  int64_t wall_ = now(CLOCK_MONOTONIC);
};

struct KernelClock {
  static int64_t ms() noexcept { return wall_clock_ms(); }
};

struct CounterClock {
  int64_t ms() noexcept { return clock.is_fresh() ? clock.ms() : clock.read_ms(true); }
  TickClock clock;
};

// In this benchmark, ids may be far ahead of the clock, so that no call of claim() waits.
Bounds bounds_at(const Layout& layout, int64_t ms) {
  return {layout.tick_at(ms), uint64_t{1} << 39, layout.end_position(), 0};
}

std::array<Shard, kThreads> words;

Shard& counter_of(const benchmark::State& state, bool own) {
  return words[own ? static_cast<size_t>(state.thread_index()) : 0];
}

template <class Clock>
void clock_read(benchmark::State& state) {
  Clock clock;
  const Meter meter;
  for (auto _ : state) benchmark::DoNotOptimize(clock.ms());
  meter.report(state, state.iterations());
}

template <bool own>
void swap(benchmark::State& state) {
  struct alignas(64) Word {
    std::atomic<uint64_t> value;
  };
  static std::array<Word, kThreads> plain;
  auto& counter = plain[own ? static_cast<size_t>(state.thread_index()) : 0].value;
  const Meter meter;
  for (auto _ : state) {
    uint64_t last = counter.load(std::memory_order_relaxed);
    while (!counter.compare_exchange_weak(last, last + 1, std::memory_order_relaxed)) {
    }
  }
  meter.report(state, state.iterations());
}

// Measures only a clock read and an atomic swap of the shard counter, without the checks that make
// ids unique.
template <bool own>
void bare_id(benchmark::State& state) {
  struct alignas(64) Word {
    std::atomic<uint64_t> value;
  };
  static std::array<Word, kThreads> plain;
  auto& counter = plain[own ? static_cast<size_t>(state.thread_index()) : 0].value;
  const Meter meter;
  for (auto _ : state) {
    const auto now = static_cast<uint64_t>(wall_clock_ms() - kDefaultEpoch) << 10;
    uint64_t last = counter.load(std::memory_order_relaxed);
    uint64_t next = std::max(last + 1, now);
    while (!counter.compare_exchange_weak(last, next, std::memory_order_relaxed))
      next = std::max(last + 1, now);
    benchmark::DoNotOptimize(next);
  }
  meter.report(state, state.iterations());
}

// The function one_id() has the attribute "flatten", as next_id() has. Without "flatten" the
// compiler would return the result of Shard::claim() in memory instead of registers.
template <class Clock, bool own>
[[gnu::flatten]] void one_id(benchmark::State& state) {
  Shard& counter = counter_of(state, own);
  Clock clock;
  Layout layout = kLayout;
  // The compiler must not use the constant kLayout, because a server reads its id layout at run
  // time.
  benchmark::DoNotOptimize(layout);
  const Meter meter;
  for (auto _ : state) {
    const Claim claim = counter.claim(layout, bounds_at(layout, clock.ms()), 1);
    benchmark::DoNotOptimize(layout.id(claim.first, 0, 5));
  }
  meter.report(state, state.iterations());
}

template <bool own>
void batch(benchmark::State& state) {
  Shard& counter = counter_of(state, own);
  Layout layout = kLayout;
  benchmark::DoNotOptimize(layout);
  const auto count = static_cast<uint64_t>(state.range(0));
  std::vector<int64_t> ids(count);
  const Meter meter;
  for (auto _ : state) {
    const Claim claim = counter.claim(layout, bounds_at(layout, wall_clock_ms()), count);
    write_ids(layout, 0, 5, claim.first, claim.count, ids.data());
    benchmark::DoNotOptimize(ids.data());
    benchmark::ClobberMemory();
  }
  meter.report(state, state.iterations() * state.range(0));
}

void decode(benchmark::State& state) {
  Layout layout = kLayout;
  benchmark::DoNotOptimize(layout);
  uint64_t id = 123456789012345678;
  const Meter meter;
  for (auto _ : state) {
    benchmark::DoNotOptimize(layout.tick_of(id));
    benchmark::DoNotOptimize(layout.shard_of(id));
    benchmark::DoNotOptimize(layout.sequence_of(id));
    ++id;
  }
  meter.report(state, state.iterations());
}

BENCHMARK(clock_read<KernelClock>)->Name("clock_read_kernel");
BENCHMARK(clock_read<CounterClock>)->Name("clock_read");
BENCHMARK(swap<true>)->Name("swap_own")->Threads(1)->UseRealTime();
BENCHMARK(bare_id<true>)->Name("bare_id_own")->ThreadRange(1, kThreads)->UseRealTime();
BENCHMARK(bare_id<false>)->Name("bare_id_shared")->ThreadRange(1, kThreads)->UseRealTime();
BENCHMARK(one_id<CounterClock, true>)->Name("id_own")->ThreadRange(1, kThreads)->UseRealTime();
BENCHMARK(one_id<CounterClock, false>)->Name("id_shared")->ThreadRange(1, kThreads)->UseRealTime();
BENCHMARK(one_id<KernelClock, true>)->Name("kernel_id_own")->Threads(1)->UseRealTime();
BENCHMARK(batch<true>)->Name("batch_own")->Arg(1000)->Arg(1000000)->UseRealTime();
BENCHMARK(batch<true>)->Name("batch_own")->Arg(1000)->Threads(2)->UseRealTime();
BENCHMARK(batch<false>)->Name("batch_shared")->Arg(1000)->Threads(2)->UseRealTime();
BENCHMARK(decode);

}  // namespace

BENCHMARK_MAIN();
