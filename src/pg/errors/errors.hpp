// Each error has its own function, so that frequently executed code contains no messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/blocker.hpp"
#include "core/shard_set.hpp"

namespace snowflake::pg {

struct RejectedSetting;

// Errors about settings, at server start
[[noreturn]] void error_invalid_layout(const char* layout, int tick_ms, const char* epoch,
                                       const char* detail);
void warn_epoch_in_future(const char* epoch);
void warn_layout_ended();
[[noreturn]] void error_unknown_setting(const char* name);

// Errors about the server and the database
[[noreturn]] void error_setting_rejected(const RejectedSetting& setting);
[[noreturn]] void error_no_shared_memory(size_t bytes);
[[noreturn]] void error_other_library(uint32_t memory_abi, uint32_t library_abi);
[[noreturn]] void error_no_memory(size_t bytes);
// The argument `blocker` (state that prevents minting) is not_installed, other_extension or
// state_missing.
[[noreturn]] void error_of_state(Blocker blocker);
[[noreturn]] void error_too_many_databases(int most);
[[noreturn, gnu::cold]] void error_read_only(const char* function);
[[noreturn]] void error_parallel(const char* function);
[[noreturn]] void error_one_snapshot();
// The argument `blocker` (state that prevents minting) is mark_not_permanent, mark_uncommitted or
// extension_recreated.
[[noreturn]] void error_of_mark(Blocker blocker);
[[noreturn]] void error_mark_unset(int64_t stored);
// The argument `blocker` (state that prevents minting) is seal_unset, seal_restored or
// seal_not_carried.
[[noreturn]] void error_of_seal(Blocker blocker, const Seals& seals);
[[noreturn]] void error_region_outside_layout(int32_t region);
[[noreturn]] void error_setting_invalid(const char* setting);
[[noreturn]] void error_layout_not_leased(int64_t leased_seal);
[[noreturn]] void error_not_a_seal(int64_t presented);
[[noreturn]] void error_seal_row_stays();
[[noreturn]] void error_not_the_seals_trigger();
[[noreturn]] void error_may_not_present();
[[noreturn]] void error_seal_not_recorded();
void notice_sealed(int32_t own_region, const ShardSet& shards);
void notice_seal_adopted(int64_t before);
void warn_may_meet_others(const char* sign);

// Errors about arguments of functions
[[noreturn]] void error_shard_null();
[[noreturn]] void error_shard_unset();
[[noreturn]] void error_shard_range(int shard);
[[noreturn, gnu::cold]] void error_shard_not_owned(int shard, const ShardSet& shards);
[[noreturn]] void error_region_range(int region);
[[noreturn]] void error_not_a_layout(const char* layout, const char* tick, const char* epoch,
                                     const char* detail);
[[noreturn]] void error_count(int count);
[[noreturn]] void error_count_null();
[[noreturn]] void error_sequence_range(int sequence);
[[noreturn]] void error_no_last_id();
[[noreturn]] void error_foreign_id(int64_t id);
[[noreturn]] void error_id_null();
[[noreturn]] void error_timestamp(int64_t timestamp);
[[noreturn]] void error_id_ahead(int64_t id, int64_t id_ms, int64_t clock_ms, int64_t lead_ms);
void notice_nothing_observed();

// Errors about the clock
[[noreturn]] void error_clock_behind(uint32_t shard, int64_t next_ms, int64_t clock_ms,
                                     int64_t needed_ms);
[[noreturn]] void error_waited_too_long(uint32_t shard, int64_t next_ms, int64_t clock_ms,
                                        int64_t waited_ms);
[[noreturn]] void error_mark_ahead(int64_t mark_ms, int64_t clock_ms, int64_t needed_ms);
[[noreturn]] void error_clock_jumped(int64_t jump_ms);
[[noreturn, gnu::cold]] void error_clock_before_epoch(int64_t clock_ms);
[[noreturn, gnu::cold]] void error_exhausted();
[[noreturn]] void error_exhausted_unsealed();

}  // namespace snowflake::pg
