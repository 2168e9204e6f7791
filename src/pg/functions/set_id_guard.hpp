// Checks the arguments of set_id() in CREATE TRIGGER, so that invalid arguments do not fail only at
// the first INSERT.
#pragma once

namespace snowflake::pg {

void install_set_id_guard();

}  // namespace snowflake::pg
