#include "errors.hpp"

#include "pg/server/postgres.hpp"

namespace snowflake::alias {

namespace {

// Cuts a text to 100 bytes for a message, because every valid name or alias is shorter.
const char* shown(std::string_view text) {
  const int length = pg_mbcliplen(text.data(), static_cast<int>(text.size()), 100);
  return pnstrdup(text.data(), static_cast<Size>(length));
}

const char* character_at(std::string_view text, size_t at) {
  const int length = pg_encoding_mblen(GetDatabaseEncoding(), text.data() + at);
  return pnstrdup(text.data() + at, std::min(static_cast<size_t>(length), text.size() - at));
}

// Only roles that may read the setting "snowflake_alias.key_file" see the path of the key file. The
// server's log always contains the path of the key file.
const char* shown_path(const char* path) {
  if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS))
    return "The setting \"snowflake_alias.key_file\" contains the path of the file. A relative "
           "path begins in the data directory.";
  if (is_absolute_path(path)) return psprintf("The path of the key file is \"%s\".", path);
  return psprintf("The path of the key file is \"%s/%s\".", DataDir, path);
}

}  // namespace

void error_no_key_file() {
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("\"snowflake_alias.key_file\" is empty"),
                  errdetail("Aliases, digits and tokens are made with the keys in this file."),
                  errhint("Set \"snowflake_alias.key_file\" to the path of a key file.")));
}

void error_key_file_lost() {
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the configured value of \"snowflake_alias.key_file\" was rejected"),
           errdetail("Only the configuration of the server can set \"snowflake_alias.key_file\"."),
           errhint("Remove the setting from the role, the database and the client's connection "
                   "options; then connect again.")));
}

void error_reading_key_file(const char* path, const char* attempt) {
  ereport(
      ERROR,
      (errcode_for_file_access(), errmsg("could not %s the key file: %m", attempt),
       errdetail("%s", shown_path(path)),
       errdetail_log("The path of the key file is \"%s\".", path),
       errhint(
           "Create the key file, and permit the operating system user of the server to read it.")));
}

void error_key_file_kind(const char* path) {
  ereport(ERROR, (errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg("the key file is not a regular file"),
                  errdetail("%s", shown_path(path)),
                  errdetail_log("The path of the key file is \"%s\".", path),
                  errhint("Set \"snowflake_alias.key_file\" to the path of a regular file.")));
}

void error_key_file_access(const char* path) {
  ereport(ERROR, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                  errmsg("the key file has unsafe permissions or an unsafe owner"),
                  errdetail("The key file must have mode 0600 or less if it belongs to the "
                            "server's user, or mode 0640 or less if it belongs to root."),
                  errdetail_log("The path of the key file is \"%s\".", path),
                  errhint("Correct the owner and the mode of the key file. If other users could "
                          "read the file, replace the keys.")));
}

void error_key_file_size(const char* path) {
  ereport(ERROR, (errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg("the key file is too large"),
                  errdetail("A key file has at most 65536 bytes."),
                  errdetail_log("The path of the key file is \"%s\".", path),
                  errhint("Remove unused keys from the key file.")));
}

void error_key_line(const char* path, int line, const char* reason) {
  ereport(ERROR, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                  errmsg("line %d of the key file is invalid", line), errdetail("%s", reason),
                  errdetail_log("%s The path of the key file is \"%s\".", reason, path),
                  errhint("Correct the line in the key file, and reload the configuration.")));
}

void error_parallel_worker() {
  ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_STATE),
                  errmsg("aliases and tokens cannot be made or read by a parallel worker"),
                  errdetail("A parallel worker would have to read the key file again, and the file "
                            "may have changed."),
                  errhint("Label the calling function PARALLEL RESTRICTED.")));
}

void error_cipher() {
  ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
                  errmsg("libcrypto could not compute AES or HMAC-SHA-256"),
                  errdetail("OpenSSL may be out of memory, or the configuration of OpenSSL may "
                            "exclude AES or HMAC-SHA-256."),
                  errhint("Check the configuration of OpenSSL.")));
}

void error_no_such_key(std::string_view name) {
  ereport(ERROR,
          (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("key \"%s\" does not exist", shown(name)),
           errdetail("No line of the key file begins with the name of this key."),
           errhint("Pass the name of an existing key, or add this key to the key file and reload "
                   "the configuration.")));
}

void error_negative_id(int64_t id) {
  ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                  errmsg("%lld is out of range for ids", static_cast<long long>(id)),
                  errdetail("Ids are 0 to %lld.", static_cast<long long>(kGreatestId)),
                  errhint("Pass an id that is not negative.")));
}

void error_digits_length(int32_t length, unsigned least, unsigned most) {
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
           errmsg("length %d is out of range for digits()", length),
           errdetail("The length must be %u to %u. The first digit of a result of digits() is "
                     "the version of the key.",
                     least, most),
           errhint("Pass length %u, which has room for every id.", most)));
}

void error_digits_id(uint64_t id, unsigned length) {
  ereport(
      ERROR,
      (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
       errmsg("number %llu is too great for a result of %u digits",
              static_cast<unsigned long long>(id), length),
       errdetail("The first digit of a result of digits() is the version of the key. The number "
                 "can have at most %u digits.",
                 length - 1),
       errhint("Pass a greater length in all calls of digits(). Length 20 has room for "
               "every id.")));
}

void error_prefix(std::string_view prefix, size_t longest) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("\"%s\" is not a valid prefix", shown(prefix)),
                  errdetail("A prefix has 1 to %zu characters from 0-9, A-Z, a-z, \"_\" and "
                            "\"-\". The last character of a prefix is \"_\" or \"-\".",
                            longest),
                  errhint("Pass a prefix such as \"user_\".")));
}

void error_other_prefix(const Form& form, std::string_view text, std::string_view prefix) {
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
           errmsg("\"%s\" does not begin with \"%s\"", shown(text), shown(prefix)),
           errdetail("The text was made with another prefix, or with none."),
           errhint("Pass a result of %s with the prefix \"%s\".", form.maker, shown(prefix))));
}

void error_written(const Form& form, NumeralError error, size_t at, std::string_view text) {
  switch (error) {
    case NumeralError::symbol:
      ereport(ERROR,
              (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
               errmsg("invalid character \"%s\" at position %d of %s", character_at(text, at),
                      pg_mbstrlen_with_len(text.data(), static_cast<int>(at)) + 1, form.name),
               errdetail("%s", form.written), errhint("Pass a result of %s.", form.maker)));
    case NumeralError::length:
      ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                      errmsg_plural("%s cannot have %zu character", "%s cannot have %zu characters",
                                    at, form.name, at),
                      errdetail("%s", form.written), errhint("Pass a result of %s.", form.maker)));
    default:
      ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                      errmsg("\"%s\" is out of range for %s", shown(text), form.name),
                      errdetail("%s", form.written), errhint("Pass a result of %s.", form.maker)));
  }
}

void error_no_such_version(unsigned version, std::string_view name) {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
       errmsg("the alias was not made with key \"%s\"", shown(name)),
       errdetail("The alias requires version %u of the key, which the key file does not contain.",
                 version),
       errhint("Pass the name of the key that made the alias, or add the missing version of the "
               "key to the key file.")));
}

void error_not_authentic(std::string_view name) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("the token was not made with key \"%s\"", shown(name)),
                  errdetail("The token was not made with any version of this key in the key file."),
                  errhint("Pass a result of snowflake.token(id, key_name).")));
}

}  // namespace snowflake::alias
