// The keys, as this session has read them from the file that "snowflake_alias.key_file" names. Read
// at the first use and again after each reload of the configuration; a file that cannot be read, or
// holds anything wrong, is an error of every call until it is mended, so that no session works with
// keys that the next session has not.
#pragma once

#include <string_view>

#include "cipher.hpp"
#include "key_file.hpp"

namespace snowflake::alias {

struct Key {
  char name[kMaxNameLength + 1];
  uint8_t name_length;
  uint8_t version;
  bool writes;  // the topmost of its name
  Cipher cipher;

  bool is_called(std::string_view called) const {
    return called == std::string_view(name, name_length);
  }
};

struct KeyRing {
  Key* keys;  // in the order of the file
  int count;

  // Null where the file has no such name or version.
  Key* writing(std::string_view name) const;
  Key* version_of(std::string_view name, unsigned version) const;
};

void define_settings();

// The keys of now. Valid until the session reloads its configuration. Refused in a parallel worker,
// which would read the file for itself: one statement would go by two states of it.
const KeyRing& current_keys();

// A key's cipher, ready for use.
const Cipher& cipher_of(Key& key);

}  // namespace snowflake::alias
