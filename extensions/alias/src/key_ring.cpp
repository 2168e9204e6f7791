#include "key_ring.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#include "errors.hpp"
#include "pg/server/configured_value.hpp"
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/parallel.h"
#include "storage/fd.h"
#include "utils/memutils.h"
}

namespace snowflake::alias {

namespace {

constexpr size_t kMaxFileSize = 65536;
constexpr size_t kShortestLine = 1 + 1 + 1 + 1 + 2 * kKeyBytes;
constexpr int kMaxKeys = kMaxFileSize / kShortestLine;

constexpr char kKeyFile[] = "snowflake_alias.key_file";
constinit char* key_file = nullptr;
constinit bool key_file_lost = false;  // PostgreSQL ignored the configured path of the key file
constinit MemoryContext memory = nullptr;
constinit KeyRing ring{};
constinit TimestampTz read_at = 0;  // PgReloadTime when the keys were read

// Applies PostgreSQL's rule for private key files. If the key file belongs to the server's user, no
// other user may have permissions on the file. If the key file belongs to root, its group may read
// the file.
bool is_private(const struct stat& file) {
  if (file.st_uid == geteuid()) return (file.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  return file.st_uid == 0 && (file.st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) == 0;
}

// All checks use the open file, because the file at the path may be replaced.
size_t read_file(const char* path, char* buffer) {
  const int fd = OpenTransientFile(path, O_RDONLY | PG_BINARY | O_NONBLOCK);
  if (fd < 0) error_reading_key_file(path, "open");
  struct stat file;
  if (fstat(fd, &file) != 0) error_reading_key_file(path, "read the status of");
  if (!S_ISREG(file.st_mode)) error_key_file_kind(path);
  if (!is_private(file)) error_key_file_access(path);
  size_t size = 0;
  while (size <= kMaxFileSize) {
    const ssize_t got = read(fd, buffer + size, kMaxFileSize + 1 - size);
    if (got == 0) break;
    if (got < 0) {
      const int failure = errno;
      forget(buffer, size);
      errno = failure;
      error_reading_key_file(path, "read");
    }
    size += static_cast<size_t>(got);
  }
  CloseTransientFile(fd);
  if (size <= kMaxFileSize) return size;
  forget(buffer, size);
  error_key_file_size(path);
}

// Frees the memory of libcrypto when the memory context of the keys is freed. The loop includes the
// entry after the last key, because add() may have left a rejected key in that entry.
void release_keys(void* argument) {
  const auto old = static_cast<KeyRing*>(argument);
  for (int i = 0; i <= old->count && i < kMaxKeys; ++i) old->keys[i].cipher.release();
}

// Adds one key of the key file to the list `keys`. Returns null, or the reason why the line in the
// key file is invalid. If libcrypto fails, add() returns an empty text.
const char* add(KeyRing& keys, KeyDerivation& derivation, const KeyLine& line) {
  if (line.error != LineError::none) return describe(line.error);
  if (line.name.empty()) return nullptr;
  Key& key = keys.keys[keys.count];
  key = Key{};
  if (!key.cipher.set_key(derivation, line.key)) return "";
  key.writes = true;
  for (int i = 0; i < keys.count; ++i) {
    const Key& other = keys.keys[i];
    const bool same_name = other.is_called(line.name);
    if (same_name && other.version == line.version)
      return "An earlier line of the file has a key with the same name and version.";
    if (memcmp(other.cipher.check_value, key.cipher.check_value, sizeof(key.cipher.check_value)) ==
        0)
      return "An earlier line of the file has the same key.";
    if (same_name) key.writes = false;
  }
  memcpy(key.name, line.name.data(), line.name.size());
  key.name_length = static_cast<uint8_t>(line.name.size());
  key.version = line.version;
  ++keys.count;
  return nullptr;
}

// Reads the key file into a new memory context. If an error is raised, the new memory context is
// freed together with the caller's context.
void read_keys() {
  if (key_file_lost) error_key_file_lost();
  if (key_file == nullptr || *key_file == '\0') error_no_key_file();
  const TimestampTz reloaded = PgReloadTime;
  const MemoryContext fresh =
      AllocSetContextCreate(CurrentMemoryContext, "snowflake_alias keys", ALLOCSET_SMALL_SIZES);
  const auto keys = static_cast<KeyRing*>(MemoryContextAllocZero(fresh, sizeof(KeyRing)));
  keys->keys = static_cast<Key*>(MemoryContextAllocZero(fresh, sizeof(Key) * kMaxKeys));
  const auto callback = static_cast<MemoryContextCallback*>(
      MemoryContextAllocZero(fresh, sizeof(MemoryContextCallback)));
  callback->func = release_keys;
  callback->arg = keys;
  MemoryContextRegisterResetCallback(fresh, callback);

  const auto buffer = static_cast<char*>(MemoryContextAlloc(fresh, kMaxFileSize + 1));
  const size_t size = read_file(key_file, buffer);
  int number = 0;
  KeyDerivation derivation{};
  const char* reason = derivation.start() ? nullptr : "";
  for (std::string_view rest(buffer, size); !rest.empty() && reason == nullptr;) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    KeyLine line = parse_key_line(rest.substr(0, end));
    reason = add(*keys, derivation, line);
    forget(line.key, sizeof(line.key));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
  }
  derivation.release();
  forget(buffer, size);
  pfree(buffer);
  if (reason != nullptr && *reason == '\0') error_cipher();
  if (reason != nullptr) error_key_line(key_file, number, reason);

  MemoryContextSetParent(fresh, TopMemoryContext);
  if (memory != nullptr) MemoryContextDelete(memory);
  memory = fresh;
  ring = *keys;
  read_at = reloaded;
}

}  // namespace

Key* KeyRing::writing(std::string_view name) const {
  for (int i = 0; i < count; ++i)
    if (keys[i].is_called(name)) return &keys[i];
  return nullptr;
}

Key* KeyRing::version_of(std::string_view name, unsigned version) const {
  for (int i = 0; i < count; ++i)
    if (keys[i].version == version && keys[i].is_called(name)) return &keys[i];
  return nullptr;
}

const KeyRing& current_keys() {
  if (IsParallelWorker()) error_parallel_worker();
  if (memory == nullptr || read_at != PgReloadTime) [[unlikely]]
    read_keys();
  return ring;
}

const Cipher& cipher_of(Key& key) {
  if (!key.cipher.prepare()) error_cipher();
  return key.cipher;
}

void define_settings() {
  const pg::ConfiguredValue configured = pg::configured_value(kKeyFile);
  DefineCustomStringVariable(kKeyFile, "Sets the file that holds the keys of aliases and tokens.",
                             "A relative path begins in the data directory.", &key_file,
                             "snowflake_alias.keys", PGC_SIGHUP,
                             GUC_SUPERUSER_ONLY | pg::kSetInParallel, nullptr, nullptr, nullptr);
  key_file_lost = pg::is_lost(kKeyFile, configured);
  MarkGUCPrefixReserved("snowflake_alias");
}

}  // namespace snowflake::alias
