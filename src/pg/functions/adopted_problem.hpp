// Finds faults of the columns that adopt() made mint, for health.
#pragma once

namespace snowflake::pg {

// "adopted column public.photos.id: its default does not mint", or null. Waits for no lock: while
// another session holds one on the table of the adopted columns, the result is null.
const char* adopted_problem();

inline constexpr const char* kAdoptedAdvice =
    "Call adopt() again, or delete the column's row from snowflake.adopted; "
    "snowflake.adopted_columns() shows all.";

}  // namespace snowflake::pg
