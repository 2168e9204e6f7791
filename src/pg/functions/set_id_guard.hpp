// CREATE TRIGGER refuses wrong arguments of set_id(), and not the first INSERT.
#pragma once

namespace snowflake::pg {

void install_set_id_guard();

}  // namespace snowflake::pg
