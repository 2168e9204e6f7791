#pragma once

namespace snowflake::pg {

// report_seal() sends the notice about a new layout before the commit of CREATE EXTENSION.
// reset_new_seal() runs at the end of each transaction.
void report_seal();
void reset_new_seal();

}  // namespace snowflake::pg
