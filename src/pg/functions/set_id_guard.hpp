// Makes CREATE TRIGGER fail if the arguments of set_id() are invalid, instead of the first INSERT.
#pragma once

namespace snowflake::pg {

void install_set_id_guard();

}  // namespace snowflake::pg
