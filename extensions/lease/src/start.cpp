
#include "worker.hpp"

#include <cstring>

#include "messages.hpp"

namespace snowflake::lease {

namespace {

constexpr char kLibrary[] = "snowflake_lease";

// The list of background workers is singly linked in some versions of PostgreSQL, and doubly linked
// in other versions.
template <class Head, class Node>
bool is_node(const Head& list, const Node* node) {
  return node != nullptr && static_cast<const void*>(node) != static_cast<const void*>(&list);
}

// The server does not start if the lease server's connection string is invalid or contains a
// password, because views would show the password.
void check_conninfo() {
  char* why = nullptr;
  PQconninfoOption* const options = PQconninfoParse(port->conninfo, &why);
  if (options == nullptr)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid value for parameter \"snowflake.lease_conninfo\""),
                    errdetail("%s", why == nullptr ? "Out of memory." : why),
                    errhint("Set \"snowflake.lease_conninfo\" to a connection string of libpq.")));
  bool password = false;
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option)
    password |= strstr(option->keyword, "password") != nullptr && option->val != nullptr &&
                option->val[0] != '\0';
  PQconninfoFree(options);
  if (password)
    ereport(
        ERROR,
        (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
         errmsg("\"snowflake.lease_conninfo\" contains a password"),
         errdetail("Backups and copies of the configuration would contain the password."),
         errhint("Remove the password, and use \"passfile\", a certificate, or another method.")));
}

// If all worker slots are in use, RegisterBackgroundWorker() only logs a message.
template <class Head>
bool is_registered(Head& list) {
  const auto named = [](auto* node) {
    const auto* worker = reinterpret_cast<const RegisteredBgWorker*>(
        reinterpret_cast<const char*>(node) - offsetof(RegisteredBgWorker, rw_lnode));
    return strcmp(worker->rw_worker.bgw_library_name, kLibrary) == 0;
  };
  for (auto* node = list.head.next; is_node(list, node); node = node->next)
    if (named(node)) return true;
  return false;
}

}  // namespace

void find_port() {
  port = static_cast<const pg::LeasePort*>(*find_rendezvous_variable(pg::kLeasePortName));
}

BackgroundWorker describe_worker() {
  BackgroundWorker worker{};
  strlcpy(worker.bgw_name, "snowflake lease", sizeof(worker.bgw_name));
  strlcpy(worker.bgw_type, "snowflake lease", sizeof(worker.bgw_type));
  strlcpy(worker.bgw_library_name, kLibrary, sizeof(worker.bgw_library_name));
  strlcpy(worker.bgw_function_name, "snowflake_lease_main", sizeof(worker.bgw_function_name));
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;  // nothing is leased during recovery
  worker.bgw_restart_time = 1;
  return worker;
}

}  // namespace snowflake::lease

extern "C" {

PG_MODULE_MAGIC;

PGDLLEXPORT void snowflake_lease_install(void);

void snowflake_lease_install(void) {
  using namespace snowflake::lease;
  find_port();
  if (port == nullptr || strcmp(port->version, SNOWFLAKE_VERSION) != 0)
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the libraries snowflake and snowflake_lease have different versions"),
             errdetail("The version of snowflake is %s. The version of snowflake_lease is %s.",
                       port == nullptr ? "none" : port->version, SNOWFLAKE_VERSION),
             errhint("Install snowflake and snowflake_lease from the same release.")));
  check_conninfo();
  BackgroundWorker worker = describe_worker();
  RegisterBackgroundWorker(&worker);
  if (is_registered(BackgroundWorkerList)) return;
  // A server with a static region can mint without the lease worker.
  ereport(
      port->static_region == nullptr ? ERROR : WARNING,
      (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
       errmsg("could not register the worker that leases regions"),
       errdetail(
           "\"max_worker_processes\" is %d, and other background workers use all of these slots.",
           max_worker_processes),
       errhint("Raise \"max_worker_processes\".")));
}

}  // extern "C"
