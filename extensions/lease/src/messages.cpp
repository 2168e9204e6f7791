#include "messages.hpp"

#include <cstring>

namespace snowflake::lease {

constinit const pg::LeasePort* port = nullptr;
constinit pg::LeaseReport report{};

namespace {

constexpr int64_t kSameKindApartUs = 60'000'000;

// RecentMessages stores when each kind of message was last logged. RecentMessages has eight
// entries, because each host of the lease server may fail with a different message.
struct RecentMessages {
  static constexpr int kKinds = 8;
  uint32_t kind[kKinds];
  int64_t at_us[kKinds];  // 0: the entry is free
  int next;

  bool is_news(uint32_t which, int64_t apart_us) {
    const int64_t now_us = monotonic_us();
    for (int i = 0; i < kKinds; ++i) {
      if (at_us[i] == 0 || kind[i] != which) continue;
      if (now_us - at_us[i] < apart_us) return false;
      at_us[i] = now_us;
      return true;
    }
    kind[next] = which;
    at_us[next] = now_us;
    next = (next + 1) % kKinds;
    return true;
  }
};
constinit RecentMessages failures{};
constinit RecentMessages recent_remarks{};
constinit bool unwell = false;  // the last message was about a failure

uint32_t kind_of(const char* text) {
  uint32_t hash = 2166136261;  // FNV-1a
  for (; *text != '\0'; ++text)
    if (*text < '0' || *text > '9') hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619;
  return hash;
}

}  // namespace

const char* time_text(int64_t ms) {
  static char text[64];
  const auto seconds = static_cast<pg_time_t>(ms / 1000);
  pg_strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", pg_gmtime(&seconds));
  return text;
}

void set_message(const char* text) {
  strlcpy(report.message, text, sizeof(report.message));
  port->report(report);
}

void log_event(int level, const char* text) {
  set_message(text);
  ereport(std::max(level, unwell ? LOG : level), (errmsg("snowflake: %s", text)));
  if (unwell) failures = RecentMessages{};
  unwell = false;
}

void log_failure(const char* text) {
  set_message(text);
  unwell = true;
  if (failures.is_news(kind_of(text), kSameKindApartUs))
    ereport(WARNING, (errmsg("snowflake: %s", text)));
}

void log_remark(const char* text) {
  if (recent_remarks.is_news(kind_of(text), INT64_MAX))
    ereport(LOG, (errmsg("snowflake: %s", text)));
}

}  // namespace snowflake::lease
