// Makes CREATE TRIGGER fail, instead of the first INSERT, if the arguments of set_id() are invalid.
#pragma once

namespace snowflake::pg {

void install_set_id_guard();

}  // namespace snowflake::pg
