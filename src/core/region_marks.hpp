// RegionMarks stores the region and the shards of each database of a server, and the time up to
// which the database mints ids. If a database leaves a region or shard, RegionMarks keeps the time
// up to which the database may have minted ids in the region. A database that begins to mint in a
// region mints only later ids than the databases that have left the region.
//
// The caller must exclude concurrent calls of record() and leave(). If a process is killed between
// two stores, later calls use the values that were already stored. Memory that is filled with zeros
// is a valid, empty RegionMarks object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/keyed_max.hpp"

namespace snowflake {

template <size_t kDatabases, size_t kRegions>
class RegionMarks {
 public:
  static constexpr size_t kEntries = kDatabases;

  // record() must be called before a database issues ids of a region up to the high-water mark
  // `mark_ms`. The argument `shards` is a hash value that is computed from the shards of the
  // database. If the region or the shards of the database have changed, record() also stores that
  // the database has left its former region, as leave() does. The argument `database` must not be
  // 0.
  void record(uint32_t database, int32_t region, uint64_t shards, int64_t mark_ms) noexcept {
    Entry* entry = find(database);
    if (entry != nullptr &&
        (region_of(*entry) != region || entry->shards.load(std::memory_order_relaxed) != shards)) {
      leave(*entry);
      entry = nullptr;
    }
    if (entry == nullptr) {
      entry = free_entry();
      entry->shards.store(shards, std::memory_order_relaxed);
      entry->mark_ms.store(mark_ms, std::memory_order_relaxed);
      entry->place.store(place(database, region), std::memory_order_release);
    } else {
      raise_to(entry->mark_ms, mark_ms);
    }
  }

  void leave(uint32_t database) noexcept {
    if (Entry* const entry = find(database)) leave(*entry);
  }

  // Returns the time up to which former databases of a region (see leave()) may have minted ids in
  // the region. Returns 0 if the region has no former database.
  int64_t left_ms(int32_t region) noexcept { return left_.read(key_of(region)); }

  // Returns the OID of the database in entry number `entry` of the table, or 0 if the entry is
  // free.
  uint32_t database_at(size_t entry) const noexcept { return database_of(entries_[entry]); }

 private:
  struct Entry {
    std::atomic<uint64_t> place;  // result of place(); 0: the entry is free
    std::atomic<uint64_t> shards;
    std::atomic<int64_t> mark_ms;
  };

  static uint32_t key_of(int32_t region) noexcept { return static_cast<uint32_t>(region) + 1; }
  static uint64_t place(uint32_t database, int32_t region) noexcept {
    return uint64_t{database} << 32 | key_of(region);
  }
  static uint32_t database_of(const Entry& entry) noexcept {
    return static_cast<uint32_t>(entry.place.load(std::memory_order_relaxed) >> 32);
  }
  static int32_t region_of(const Entry& entry) noexcept {
    return static_cast<int32_t>(entry.place.load(std::memory_order_relaxed)) - 1;
  }

  Entry* find(uint32_t database) noexcept {
    for (Entry& entry : entries_)
      if (database_of(entry) == database) return &entry;
    return nullptr;
  }

  void leave(Entry& entry) noexcept {
    left_.raise(key_of(region_of(entry)), entry.mark_ms.load(std::memory_order_relaxed));
    entry.place.store(0, std::memory_order_release);
  }

  // Returns an unused entry. If all entries are in use, free_entry() frees the first entry by
  // calling leave().
  Entry* free_entry() noexcept {
    if (Entry* const unused = find(0)) return unused;
    leave(entries_[0]);
    return &entries_[0];
  }

  Entry entries_[kDatabases];
  KeyedMax<kRegions> left_;
};

}  // namespace snowflake
