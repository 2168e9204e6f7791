#include "core/clock.hpp"
#include "core/epoch.hpp"
#include "pg/clock/clock_error.hpp"
#include "pg/clock/clock_watch.hpp"
#include "pg/clock/clock_source.hpp"
#include "pg/server/row.hpp"
#include "pg/checks/seal_check.hpp"
#include "pg/errors/errors.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

double used_percent(const Layout& of) {
  const auto range = static_cast<double>(of.last_minted_tick() + 1) * of.tick_ms;
  const auto passed = static_cast<double>(wall_clock_ms() - of.epoch_ms);
  return std::rint(std::max(0.0, passed) / range * 10000) / 100;
}

Datum layout_row(FunctionCallInfo fcinfo, const Layout& of) {
  return row_of(fcinfo,
                {
                    {"bits", layout_bits_text(of)},
                    {"time_bits", Int32GetDatum(of.time_bits)},
                    {"region_bits", Int32GetDatum(of.region_bits)},
                    {"shard_bits", Int32GetDatum(of.shard_bits)},
                    {"sequence_bits", Int32GetDatum(of.sequence_bits)},
                    {"tick_ms", Int32GetDatum(static_cast<int32>(of.tick_ms))},
                    {"epoch", timestamp_datum(of.epoch_ms)},
                    {"regions", Int32GetDatum(static_cast<int32>(of.regions()))},
                    {"shards", Int32GetDatum(static_cast<int32>(of.shards()))},
                    {"ids_per_second",
                     Int64GetDatum(static_cast<int64_t>(of.ids_per_tick() * 1000 / of.tick_ms))},
                    {"ends_at", timestamp_datum(of.ms_of_tick(of.last_minted_tick() + 1))},
                    {"used_percent", Float8GetDatum(used_percent(of))},
                });
}

}  // namespace

SF_SQL_FUNCTION(layout) {
  require_seal(SealUse::none);
  PG_RETURN_DATUM(layout_row(fcinfo, layout));
}

// preview_layout() accepts the same texts for a layout as the settings in postgresql.conf.
SF_SQL_FUNCTION(preview_layout) {
  const char* const bits = text_to_cstring(PG_GETARG_TEXT_PP(0));
  const char* const tick = text_to_cstring(PG_GETARG_TEXT_PP(1));
  const char* const epoch = text_to_cstring(PG_GETARG_TEXT_PP(2));
  const auto refuse = [&](LayoutError error) {
    error_not_a_layout(bits, tick, epoch, describe(error));
  };

  double tick_ms = 0;
  if (!parse_real(tick, &tick_ms, GUC_UNIT_MS, nullptr) || tick_ms < 0 || tick_ms > 1000 ||
      tick_ms != std::floor(tick_ms))
    refuse(LayoutError::tick);
  const auto parsed_epoch = parse_epoch(epoch);
  if (!parsed_epoch.valid) refuse(LayoutError::epoch_syntax);
  const auto parsed = parse_layout(bits, static_cast<uint32_t>(tick_ms), parsed_epoch.ms);
  if (parsed.error != LayoutError::none) refuse(parsed.error);
  PG_RETURN_DATUM(layout_row(fcinfo, parsed.layout));
}

SF_SQL_FUNCTION(clock_history) {
  require_shared_state();
  check_clock();
  const ClockWatch& watch = shared_state->clock;
  const ClockBounds bounds = clock_bounds();
  const ClockSource source = clock_source();
  return row_of(
      fcinfo,
      {
          {"backward_steps", Int64GetDatum(count_of(watch.backward_steps))},
          {"largest_backward_step_ms",
           milliseconds_datum(watch.largest_backward_us.load(std::memory_order_relaxed))},
          {"forward_steps", Int64GetDatum(count_of(watch.forward_steps))},
          {"largest_forward_step_ms",
           milliseconds_datum(watch.largest_forward_us.load(std::memory_order_relaxed))},
          {"offset_ms", milliseconds_datum(bounds.offset_us), !bounds.known},
          {"estimated_error_ms", milliseconds_datum(bounds.estimated_error_us), !bounds.known},
          {"clock_source", CStringGetTextDatum(source.name), source.name[0] == '\0'},
          {"counter_used", BoolGetDatum(counter_is_used())},
      });
}

}  // namespace snowflake::pg
