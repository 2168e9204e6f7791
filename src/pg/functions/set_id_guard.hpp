// Refuses wrong arguments of set_id() in CREATE TRIGGER, before the first INSERT.
#pragma once

namespace snowflake::pg {

void install_set_id_guard();

}  // namespace snowflake::pg
