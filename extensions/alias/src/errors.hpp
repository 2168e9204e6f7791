// Errors of the extension. An alias is an encrypted id, so no error message contains the decrypted
// id. No error message contains a part of the key file.
#pragma once

#include <string_view>

#include "core/numeral.hpp"
#include "key_file.hpp"

namespace snowflake::alias {

struct Form {
  const char* name;     // for example "an alias"
  const char* written;  // error detail about the format of an alias, a token or digits
  const char* maker;
};

// Errors about the key file
[[noreturn]] void error_no_key_file();
[[noreturn]] void error_key_file_lost();
[[noreturn]] void error_reading_key_file(const char* path, const char* attempt);
[[noreturn]] void error_key_file_kind(const char* path);
[[noreturn]] void error_key_file_access(const char* path);
[[noreturn]] void error_key_file_size(const char* path);
[[noreturn]] void error_key_line(const char* path, int line, const char* reason);
[[noreturn]] void error_parallel_worker();
[[noreturn]] void error_cipher();

// Errors about arguments of functions
[[noreturn]] void error_no_such_key(std::string_view name);
[[noreturn]] void error_negative_id(int64_t id);
[[noreturn]] void error_digits_length(int32_t length, unsigned least, unsigned most);
[[noreturn]] void error_digits_id(uint64_t id, unsigned length);
[[noreturn]] void error_prefix(std::string_view prefix, size_t longest);
[[noreturn]] void error_other_prefix(const Form& form, std::string_view text,
                                     std::string_view prefix);
[[noreturn]] void error_written(const Form& form, NumeralError error, size_t at,
                                std::string_view text);
[[noreturn]] void error_no_such_version(unsigned version, std::string_view name);
[[noreturn]] void error_not_authentic(std::string_view name);

}  // namespace snowflake::alias
