#include "pg/errors/errors_outside.hpp"

#include "pg/server/settings.hpp"
#include "pg/server/text.hpp"
#include "pg/server/postgres.hpp"

namespace snowflake::pg {

namespace {

// The argument `at` is a byte offset in the text. character_number() counts characters from 1.
const char* character_at(std::string_view text, size_t at) {
  const int length = pg_encoding_mblen(GetDatabaseEncoding(), text.data() + at);
  return pnstrdup(text.data() + at, std::min(static_cast<size_t>(length), text.size() - at));
}

int character_number(std::string_view text, size_t at) {
  return pg_mbstrlen_with_len(text.data(), static_cast<int>(at)) + 1;
}

const char* describe(UuidError error) {
  switch (error) {
    case UuidError::none:
      break;
    case UuidError::version:
      return "The version is not 7, or the variant is not that of RFC 9562.";
    case UuidError::time:
      return "The time is not the start of a tick of the layout.";
    case UuidError::rest:
      return "Bits are set that ids of this layout do not use.";
    case UuidError::check:
      return "The check bits (the last 30 bits) do not match the other bits.";
  }
  return "";
}

}  // namespace

void error_negative_id(int64_t id) {
  ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                  errmsg("%lld is out of range for ids", static_cast<long long>(id)),
                  errdetail("Text forms exist for ids from 0 to %lld.",
                            static_cast<long long>(kGreatestId)),
                  errhint("Pass an id; ids are never negative.")));
}

void error_numeral(const TextForm& form, NumeralError error, size_t at, std::string_view text) {
  switch (error) {
    case NumeralError::none:
      break;
    case NumeralError::symbol:
      ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                      errmsg("invalid character \"%s\" at position %d of a %s",
                             character_at(text, at), character_number(text, at), form.name),
                      errdetail("%s", form.written), errhint("Pass a result of %s.", form.maker)));
    case NumeralError::length:
      ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                      errmsg_plural("a %s cannot have %zu character",
                                    "a %s cannot have %zu characters", at, form.name, at),
                      errdetail("%s", form.written),
                      at == text.size() && at != 0 && at < static_cast<size_t>(form.padded_length)
                          ? errhint("Pass a result of %s. If another encoder created the text, pad "
                                    "it with zeros: lpad(text, %d, '0').",
                                    form.maker, form.padded_length)
                          : errhint("Pass a result of %s.", form.maker)));
    case NumeralError::overflow:
      ereport(ERROR,
              (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("%s is out of range", form.name),
               errdetail("%s", form.written), errhint("Pass a result of %s.", form.maker)));
    case NumeralError::check:
      ereport(ERROR,
              (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
               errmsg("check symbol \"%s\" does not match this base32 id", character_at(text, at)),
               errdetail("At least one character of the id is wrong."),
               errhint("Copy the id again from where it was stored or sent.")));
  }
  elog(ERROR, "unexpected NumeralError %d", static_cast<int>(error));
}

void error_no_uuid_for(int64_t id) {
  const int64_t ms = layout.ms_of_tick(layout.tick_of(static_cast<uint64_t>(id)));
  const char* time = kept_time_text(ms);
  ereport(ERROR,
          (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
           errmsg("id %lld cannot be represented as a UUID", static_cast<long long>(id)),
           errdetail("The id has the time %s. The latest time that fits into a UUID is before %s.",
                     time, time_text(kUuidEndMs)),
           errhint("Use a text form such as to_base62() for this id.")));
}

void error_foreign_uuid(const char* form, const char* text, const char* maker, UuidError error) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("%s \"%s\" does not represent an id of this layout", form, text),
                  errdetail("%s", describe(error)), errhint("Pass a result of %s.", maker)));
}

}  // namespace snowflake::pg
