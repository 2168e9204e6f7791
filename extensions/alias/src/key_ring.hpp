// A session reads the keys of aliases from the file "snowflake_alias.key_file" at their first use
// and after each reload of the configuration. If any line of the key file is invalid, every call
// fails until the file is corrected. If calls ignored the invalid lines of a key file, sessions
// could use different keys.
#pragma once

#include <string_view>

#include "cipher.hpp"
#include "key_file.hpp"

namespace snowflake::alias {

struct Key {
  char name[kMaxNameLength + 1];
  uint8_t name_length;
  uint8_t version;
  bool writes;  // true if the key encrypts new aliases: the first key of its name in the file
  Cipher cipher;

  bool is_called(std::string_view called) const {
    return called == std::string_view(name, name_length);
  }
};

struct KeyRing {
  Key* keys;  // keys in the order of the lines of the key file
  int count;

  // Returns a key of the key file, or null if the key file does not contain the name or the
  // version.
  Key* writing(std::string_view name) const;
  Key* version_of(std::string_view name, unsigned version) const;
};

void define_settings();

// The returned keys are valid until the session reloads its configuration. If a parallel worker
// calls current_keys(), the function raises an error. A parallel worker would read the key file
// itself, so one statement could use two versions of the key file.
const KeyRing& current_keys();

const Cipher& cipher_of(Key& key);

}  // namespace snowflake::alias
