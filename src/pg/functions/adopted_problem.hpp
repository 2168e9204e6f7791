#pragma once

namespace snowflake::pg {

// Returns a problem of a column that adopt() has changed, such as "adopted column public.photos.id:
// its default does not mint ids", or null. Returns null without waiting if another session has
// locked the table snowflake.adopted.
const char* adopted_problem();

inline constexpr const char* kAdoptedAdvice =
    "Call adopt() again, or delete the row of the column from table snowflake.adopted. "
    "snowflake.adopted_columns() shows all problems.";

}  // namespace snowflake::pg
