// Lets CREATE TRIGGER fail if the arguments of set_id() are invalid. Without this check, the first
// INSERT would fail.
#pragma once

namespace snowflake::pg {

void install_set_id_guard();

}  // namespace snowflake::pg
