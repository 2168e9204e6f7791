#include "pg/errors/cause.hpp"

namespace snowflake::pg {

namespace {

constexpr CauseText kTexts[kCauses] = {
    {"clock_behind", "the clock is behind the ids of a shard", false},
    {"clock_jumped", "the clock jumped ahead", true},
    {"clock_before_epoch", "the clock is before the epoch", true},
    {"waited_too_long", "more ids are requested of a shard than it has", false},
    {"mark_ahead", "the clock is behind the high-water mark", true},
    {"mark_lost", "the high-water mark is lost", true},
    {"seal", "the layout of this database is lost, contradicted or unusable here", true},
    {"not_owned", "a shard is requested that this server does not own", false},
    {"id_ahead", "the next id must exceed one that is too far ahead of the clock", false},
    {"exhausted", "the layout is exhausted", true},
    {"lease", "there is no lease of a region", true},
    {"read_only", "the transaction or the server is read-only", false},
    {"commit_wait", "a commit cannot wait for the clock", false},
    {"mark_unsafe", "the high-water mark would be lost with a crash or a rollback", true},
    {"too_many_databases", "too many databases use snowflake", true},
    {"state_missing", "a part of the extension's state is missing", true},
    {"clone", "the database last minted elsewhere", true},
    {"unsynchronized", "the clock is not synchronized", true},
};

}  // namespace

const CauseText& text_of(Cause cause) {
  return kTexts[static_cast<int>(cause)];
}

}  // namespace snowflake::pg
