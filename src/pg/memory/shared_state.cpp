#include "pg/memory/shared_state.hpp"

namespace snowflake::pg {

constinit SharedState* shared_state = nullptr;
constinit DatabaseState* database_states = nullptr;

}  // namespace snowflake::pg
