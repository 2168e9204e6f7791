#pragma once

namespace snowflake::pg {

// Before the commit of CREATE EXTENSION, report_seal() sends the notice about the new id layout
// (seal). At the end of each transaction, reset_new_seal() clears the flag `seal_is_new`, so that
// later transactions do not send the notice about the id layout.
void report_seal();
void reset_new_seal();

}  // namespace snowflake::pg
