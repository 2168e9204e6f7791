#include "pg/clock/clock_source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "core/tick_clock.hpp"
#include "pg/memory/shared_state.hpp"
#include "pg/errors/log_messages.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

template <size_t size>
std::string_view read_start(const char* path, char (&buffer)[size]) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  size_t length = 0;
  // One read() of /proc/cpuinfo returns only a part of the file.
  for (ssize_t got = 1; got > 0 && length < size;) {
    got = read(file, buffer + length, size - length);
    if (got > 0) length += static_cast<size_t>(got);
  }
  close(file);
  return {buffer, length};
}

// Reads the flags of the first processor only, because all processors have the same flags.
bool processor_has_constant_counter() {
  char buffer[16384];
  std::string_view text = read_start("/proc/cpuinfo", buffer);
  const size_t line = text.find("\nflags");
  if (line == std::string_view::npos) return false;
  text.remove_prefix(line + 1);
  text = text.substr(0, text.find('\n'));
  const size_t colon = text.find(": ");
  return colon != std::string_view::npos && has_constant_counter(text.substr(colon + 2));
}

}  // namespace

ClockSource clock_source() {
  ClockSource source{};
  char buffer[sizeof(source.name) - 1];
  std::string_view text =
      read_start("/sys/devices/system/clocksource/clocksource0/current_clocksource", buffer);
  text = text.substr(0, text.find('\n'));
  std::copy(text.begin(), text.end(), source.name);
  return source;
}

void find_counter(ClockWatch& watch) {
  watch.counter_cost_ns = counter_cost_ns<MachineClocks>();
  watch.counter_is_constant = processor_has_constant_counter();
  const ClockSource source = clock_source();
  const CounterUse use =
      judge_counter(source.name, watch.counter_is_constant, watch.counter_cost_ns);
  watch.counter_use.store(use, std::memory_order_relaxed);
  log_counter(source.name, use, watch.counter_cost_ns);
}

void check_counter(ClockWatch& watch) {
  const ClockSource source = clock_source();
  const CounterUse use =
      judge_counter(source.name, watch.counter_is_constant, watch.counter_cost_ns);
  if (watch.counter_use.exchange(use, std::memory_order_relaxed) != use)
    log_counter(source.name, use, watch.counter_cost_ns);
}

bool counter_is_used() {
  return use_tsc && shared_state != nullptr &&
         shared_state->clock.counter_use.load(std::memory_order_relaxed) == CounterUse::used;
}

}  // namespace snowflake::pg
