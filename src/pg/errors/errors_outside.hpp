#pragma once

#include "core/numeral.hpp"
#include "core/uuid.hpp"

namespace snowflake::pg {

struct TextForm {
  const char* name;     // for example "base62 id"
  const char* written;  // the format, as a sentence
  const char* maker;
  int padded_length;
};

[[noreturn]] void error_negative_id(int64_t id);
[[noreturn]] void error_numeral(const TextForm& form, NumeralError error, size_t at,
                                std::string_view text);
[[noreturn]] void error_no_uuid_for(int64_t id);
[[noreturn]] void error_foreign_uuid(const char* form, const char* text, const char* maker,
                                     UuidError error);

}  // namespace snowflake::pg
