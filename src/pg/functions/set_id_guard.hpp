// Makes CREATE TRIGGER raise an error if the arguments of set_id() are invalid. Without the check
// in CREATE TRIGGER, only the first INSERT would raise the error.
#pragma once

namespace snowflake::pg {

void install_set_id_guard();

}  // namespace snowflake::pg
