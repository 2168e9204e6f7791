// The messages of this file are written only to the server log, never to a client.
#pragma once

#include <cstdint>

#include "core/blocker.hpp"
#include "core/clock_bounds.hpp"
#include "core/counter.hpp"
#include "pg/errors/cause.hpp"

namespace snowflake::pg {

// The argument `drift_us` is the change of the difference between the wall clock and the time since
// boot. The argument `mark_ms` is 0 if the high-water mark is not known yet.
void log_refusals_begin(Blocker blocker, int64_t drift_us, int64_t mark_ms);
// The argument `statement` is an ALTER DATABASE command after which the two databases mint
// different ids.
void log_same_ids(const char* other, uint32_t shard, const char* statement);

void log_refusals_over(Cause cause, uint64_t refused, int64_t lasted_ms);

// Log messages about the clock
void log_stepped_back(int64_t step_ms, uint64_t steps);
void log_stepped_ahead(int64_t step_ms, uint64_t steps);
void log_caught_up(int64_t lasted_ms);
void log_jumped_ahead(int64_t drift_ms);
void log_jump_over(int64_t drift_ms, int64_t lasted_ms);
void log_clock_accepted(int64_t drift_ms);
void log_clock_believed(int64_t drift_ms);
void log_unsynchronized(const ClockBounds& bounds);
void log_synchronized(const ClockBounds& bounds, int64_t lasted_ms);
void log_counter(const char* source, CounterUse use, int64_t cost_ns);

// Log messages about the high-water mark and the layout
//
// After a server start, the first session that mints in a database calls log_first_mark() with the
// stored high-water mark. If the clock is before the mark, log_first_mark() writes no message. Only
// the message of log_first_mark() shows that the clock was far ahead at boot.
void log_first_mark(int64_t mark_ms, int64_t clock_ms);
void log_slow_mark(int64_t took_ms);
void log_end_is_near();

const char* clock_error_text(const ClockBounds& bounds);

}  // namespace snowflake::pg
