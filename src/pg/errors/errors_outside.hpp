// Errors of ids outside the database: text forms and UUIDs. The rules of errors.hpp apply.
#pragma once

#include "core/numeral.hpp"
#include "core/uuid.hpp"

namespace snowflake::pg {

// A text form, described for users.
struct TextForm {
  const char* name;     // "base62 id"
  const char* written;  // the format of the text form, as a sentence for the detail of an error
  const char* maker;    // the function that makes the text form
  int padded_length;    // the length of a text that other encoders shorten; otherwise 0
};

[[noreturn]] void error_negative_id(int64_t id);
[[noreturn]] void error_numeral(const TextForm& form, NumeralError error, size_t at,
                                std::string_view text);
[[noreturn]] void error_no_uuid_for(int64_t id);
[[noreturn]] void error_foreign_uuid(const char* form, const char* text, const char* maker,
                                     UuidError error);

}  // namespace snowflake::pg
