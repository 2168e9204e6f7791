#include "hosts.hpp"

#include <cstdlib>
#include <cstring>

namespace snowflake::lease {

namespace {

constexpr int kMostHosts = 32;

struct Turn {
  int hosts;
  int host;
  int address;                // the index of the address in use among the addresses of the host
  int addresses[kMostHosts];  // how many addresses each host has; 0: unknown
  int tried;                  // how many addresses failed in this pass through the list of hosts
};
constinit Turn turn{};

// Lists of hosts and ports come from the connection string or else from the service file, the
// environment or libpq's defaults.
struct Lists {
  char host[2048];
  char hostaddr[2048];
  char port[512];
  int connect_timeout_s;
};

const char* value_of(const PQconninfoOption* options, const char* keyword) {
  for (; options != nullptr && options->keyword != nullptr; ++options)
    if (strcmp(options->keyword, keyword) == 0 && options->val != nullptr) return options->val;
  return "";
}

bool read_lists(const char* conninfo, Lists* lists) {
  PQconninfoOption* const given = PQconninfoParse(conninfo, nullptr);
  // PQconndefaults() reads only the service that PGSERVICE names.
  const char* service = value_of(given, "service");
  if (service[0] != '\0') (void)setenv("PGSERVICE", service, 1);
  PQconninfoOption* const defaults = PQconndefaults();
  const auto take = [&](const char* keyword, char* to, size_t size) {
    const char* value = value_of(given, keyword);
    return strlcpy(to, value[0] != '\0' ? value : value_of(defaults, keyword), size) < size;
  };
  char timeout[32];
  const bool good = take("host", lists->host, sizeof(lists->host)) &&
                    take("hostaddr", lists->hostaddr, sizeof(lists->hostaddr)) &&
                    take("port", lists->port, sizeof(lists->port)) &&
                    take("connect_timeout", timeout, sizeof(timeout));
  lists->connect_timeout_s = good ? atoi(timeout) : 0;
  PQconninfoFree(given);
  PQconninfoFree(defaults);
  return good;
}

int entries(const char* list) {
  int count = 1;
  for (; *list != '\0'; ++list) count += *list == ',';
  return count;
}

void copy_entry(const char* list, int number, char* to, size_t size) {
  while (number-- > 0) list = strchr(list, ',') + 1;
  strlcpy(to, list, std::min(size, strcspn(list, ",") + 1));
}

bool is_path(const char* host) {
  return host[0] == '/' || host[0] == '@';
}

// Invalid lists of hosts and ports are passed to libpq, so that libpq reports the error.
bool are_sound(const Lists& lists, int count) {
  return count <= kMostHosts &&
         (lists.host[0] == '\0' || lists.hostaddr[0] == '\0' || entries(lists.host) == count) &&
         (entries(lists.port) == 1 || entries(lists.port) == count);
}

void name_target(Target* target) {
  const bool both = target->host[0] != '\0' && target->hostaddr[0] != '\0' &&
                    strcmp(target->host, target->hostaddr) != 0;
  snprintf(target->name, sizeof(target->name), "%s%s%s%s, port %s",
           target->host[0] != '\0' ? target->host : target->hostaddr, both ? " (" : "",
           both ? target->hostaddr : "", both ? ")" : "", target->port);
}

bool find_address(const Deadline& deadline, Target* target, char* why, size_t why_size) {
  int& known = turn.addresses[turn.host];
  if (target->hostaddr[0] == '\0' && target->host[0] != '\0' && !is_path(target->host)) {
    Addresses addresses{};
    known = 1;
    if (!resolve(target->host, deadline, &addresses, why, why_size)) return false;
    known = addresses.count;
    turn.address %= known;
    strlcpy(target->hostaddr, addresses.text[turn.address], sizeof(target->hostaddr));
  }
  target->alone = turn.hosts == 1 && known <= 1;
  return true;
}

}  // namespace

bool find_target(const char* conninfo, const Deadline& deadline, Target* target, char* why,
                 size_t why_size) {
  static Lists lists;
  *target = Target{};
  target->alone = true;
  strlcpy(target->name, "it", sizeof(target->name));
  turn.hosts = 1;
  if (!read_lists(conninfo, &lists)) return true;
  target->connect_timeout_ms = 1000 * std::clamp(lists.connect_timeout_s, 0, 3600);
  const int count = entries(lists.hostaddr[0] != '\0' ? lists.hostaddr : lists.host);
  if (!are_sound(lists, count)) return true;
  turn.hosts = count;
  if (turn.host >= count) turn.host = turn.address = 0;
  if (lists.host[0] != '\0') copy_entry(lists.host, turn.host, target->host, sizeof(target->host));
  if (lists.hostaddr[0] != '\0')
    copy_entry(lists.hostaddr, turn.host, target->hostaddr, sizeof(target->hostaddr));
  copy_entry(lists.port, entries(lists.port) == 1 ? 0 : turn.host, target->port,
             sizeof(target->port));
  // Uses the default socket directory for an empty entry in the list of hosts, as libpq does.
  if (target->host[0] == '\0' && target->hostaddr[0] == '\0' && count > 1)
    strlcpy(target->host, DEFAULT_PGSOCKET_DIR, sizeof(target->host));
  const bool found = find_address(deadline, target, why, why_size);
  name_target(target);
  return found;
}

void stay() {
  turn.tried = 0;
}

bool leave() {
  int all = 0;
  for (int i = 0; i < turn.hosts; ++i) all += std::max(1, turn.addresses[i]);
  if (++turn.address >= turn.addresses[turn.host]) {
    turn.address = 0;
    turn.host = (turn.host + 1) % turn.hosts;
  }
  if (++turn.tried < all) return true;
  turn.tried = 0;
  return false;
}

}  // namespace snowflake::lease
