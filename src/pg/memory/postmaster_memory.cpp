#include "pg/memory/postmaster_memory.hpp"

#include <sys/mman.h>

#include <new>

#include "core/clock.hpp"
#include "pg/errors/errors.hpp"

namespace snowflake::pg {

constinit PostmasterMemory* postmaster_memory = nullptr;

void map_postmaster_memory() {
  void* const memory = mmap(nullptr, sizeof(PostmasterMemory), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) error_no_memory(sizeof(PostmasterMemory));
  // mmap() fills the memory with zeros, which are the initial values.
  postmaster_memory = new (memory) PostmasterMemory;
  postmaster_memory->clock.start(clock_offset_us());
}

int64_t clock_drift_us() {
  return postmaster_memory->clock.drift_us(clock_offset_us());
}

}  // namespace snowflake::pg
