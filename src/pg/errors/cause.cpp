#include "pg/errors/cause.hpp"

namespace snowflake::pg {

namespace {

constexpr CauseText kTexts[kCauses] = {
    {"clock_behind", "the clock is behind the ids of a shard", false},
    {"clock_jumped", "the clock jumped ahead", true},
    {"clock_before_epoch", "the clock is before the epoch of the ids", true},
    {"waited_too_long", "calls request more ids from a shard than the shard can mint", false},
    {"mark_ahead", "the clock is behind the high-water mark (sequence snowflake.high_water)", true},
    {"mark_lost", "the high-water mark (sequence snowflake.high_water) is lost", true},
    {"seal",
     "the id layout of this database is lost, or does not fit the dump, the region or the lease "
     "server",
     true},
    {"not_owned", "this server does not own the requested shard", false},
    {"id_ahead", "an id that was passed to a call is too far ahead of the clock", false},
    {"exhausted", "the id layout has no time values left", true},
    {"lease", "this server has no valid lease of a region", true},
    {"read_only", "the transaction or the server is read-only", false},
    {"commit_wait", "the clock is not synchronized, or a commit would wait too long", false},
    {"mark_unsafe",
     "a crash or a rollback would lose the high-water mark (sequence snowflake.high_water)", true},
    {"too_many_databases", "too many databases use snowflake", true},
    {"state_missing", "the extension, or one of its sequences or tables, is missing", true},
    {"clone", "the database may be a clone", true},
    {"unsynchronized", "the clock is not synchronized", true},
};

}  // namespace

const CauseText& text_of(Cause cause) {
  return kTexts[static_cast<int>(cause)];
}

}  // namespace snowflake::pg
