// Only this file includes PostgreSQL's headers, and only this file contains code for different
// PostgreSQL versions.
#pragma once

// C++ headers come first, because macros of PostgreSQL (printf, Min, _) break C++ headers.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <string_view>

#include "core/base32.hpp"
#include "core/base62.hpp"
#include "core/clock.hpp"
#include "core/clock_base.hpp"
#include "core/clock_bounds.hpp"
#include "core/counter.hpp"
#include "core/key_shard.hpp"
#include "core/keyed_max.hpp"
#include "core/layout.hpp"
#include "core/lease_memory.hpp"
#include "core/limits.hpp"
#include "core/mint_origin.hpp"
#include "core/blocker.hpp"
#include "core/seal.hpp"
#include "core/settled.hpp"
#include "core/shard.hpp"
#include "core/shard_set.hpp"
#include "core/tick_clock.hpp"
#include "core/uuid.hpp"

extern "C" {
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_database.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_subscription.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "parser/parser.h"
#include "partitioning/partbounds.h"
#include "pgstat.h"
#include "pgtime.h"
#include "rewrite/rewriteHandler.h"
#include "storage/bufmgr.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rangetypes.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
#include "utils/varlena.h"
#include "utils/wait_event.h"
}

#if PG_VERSION_NUM < 150000
#error "snowflake needs PostgreSQL 15 or later"
#endif

// PostgreSQL 15 defines PGDLLEXPORT as empty, but symbols of this library are hidden by default.
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

namespace snowflake::pg {

inline bool storage_is_uncommitted(Relation relation) {
#if PG_VERSION_NUM >= 160000
  return relation->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
#else
  return relation->rd_firstRelfilenodeSubid != InvalidSubTransactionId;
#endif
}

inline bool may_create_in_database() {
#if PG_VERSION_NUM >= 160000
  return object_aclcheck(DatabaseRelationId, MyDatabaseId, GetUserId(), ACL_CREATE) == ACLCHECK_OK;
#else
  return pg_database_aclcheck(MyDatabaseId, GetUserId(), ACL_CREATE) == ACLCHECK_OK;
#endif
}

inline bool owns_relation(Oid relation) {
#if PG_VERSION_NUM >= 160000
  return object_ownercheck(RelationRelationId, relation, GetUserId());
#else
  return pg_class_ownercheck(relation, GetUserId());
#endif
}

inline bool may_execute(Oid function) {
#if PG_VERSION_NUM >= 160000
  return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#else
  return pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

inline bool may_use_schema(Oid schema) {
#if PG_VERSION_NUM >= 160000
  return object_aclcheck(NamespaceRelationId, schema, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
#else
  return pg_namespace_aclcheck(schema, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
#endif
}

// Returns whether `user` has the privileges of `role` and can SET ROLE to `role`.
inline bool may_act_as(Oid user, Oid role) {
#if PG_VERSION_NUM >= 160000
  if (!member_can_set_role(user, role)) return false;
#endif
  return has_privs_of_role(user, role);
}

// Returns whether a column is a virtual generated column, which is not stored.
inline bool is_computed([[maybe_unused]] const FormData_pg_attribute& attribute) {
#if PG_VERSION_NUM >= 180000
  return attribute.attgenerated == ATTRIBUTE_GENERATED_VIRTUAL;
#else
  return false;
#endif
}

template <class Visit>
inline void for_each_setting(Visit visit) {
  int count = 0;
#if PG_VERSION_NUM >= 160000
  config_generic** const all = get_guc_variables(&count);
#else
  config_generic** const all = get_guc_variables();
  count = GetNumConfigOptions();
#endif
  for (int i = 0; i < count; ++i) visit(*all[i]);
}

// Returns whether the reset value of a boolean setting is on. A reload of the configuration can
// change the reset value during the session. Returns false if a source of higher priority than
// `source`, such as ALTER ROLE, has set the value.
inline bool is_on_for_all(const char* name, GucSource source = PGC_S_DATABASE) {
  bool on = false;
  for_each_setting([&](const config_generic& setting) {
    if (setting.vartype == PGC_BOOL && setting.reset_source <= source &&
        strcmp(setting.name, name) == 0)
      on = reinterpret_cast<const config_bool&>(setting).reset_val;
  });
  return on;
}

// Allocates memory that a check hook passes to its assign hook, and that PostgreSQL frees.
inline void* guc_extra(size_t size) {
#if PG_VERSION_NUM >= 160000
  return guc_malloc(LOG, size);
#else
  return malloc(size);
#endif
}

// Returns the backend's number, which is less than MaxBackends.
inline int own_proc_number() {
#if PG_VERSION_NUM >= 170000
  return MyProcNumber;
#else
  return MyProc->pgprocno;
#endif
}

inline int new_lock_tranche([[maybe_unused]] const char* name) {
#if PG_VERSION_NUM >= 190000
  return LWLockNewTrancheId(name);
#else
  return LWLockNewTrancheId();
#endif
}

// Before PostgreSQL 19, each process must register the name of a lock tranche.
inline void register_lock_tranche([[maybe_unused]] int tranche, [[maybe_unused]] const char* name) {
#if PG_VERSION_NUM < 190000
  LWLockRegisterTranche(tranche, name);
#endif
}

// After a recovery, the lock of a prepared transaction contains its own transaction id instead of a
// session's virtual transaction id.
inline TransactionId prepared_transaction_of(const LockInstanceData& lock) {
#if PG_VERSION_NUM >= 170000
  const VirtualTransactionId holder = lock.vxid;
#else
  const VirtualTransactionId holder = {lock.backend, lock.lxid};
#endif
  if (VirtualTransactionIdIsRecoveredPreparedXact(holder)) return holder.localTransactionId;
  bool more = false;
  return TwoPhaseGetXidByVirtualXID(holder, &more);
}

inline IndexScanDesc begin_index_scan(Relation table, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 190000
  return index_beginscan(table, index, snapshot, nullptr, keys, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
  return index_beginscan(table, index, snapshot, nullptr, keys, 0);
#else
  return index_beginscan(table, index, snapshot, keys, 0);
#endif
}

inline TableScanDesc begin_scan(Relation table, Snapshot snapshot) {
#if PG_VERSION_NUM >= 190000
  return table_beginscan(table, snapshot, 0, nullptr, SO_NONE);
#else
  return table_beginscan(table, snapshot, 0, nullptr);
#endif
}

inline TableScanDesc begin_range_scan(Relation table, Snapshot snapshot, ItemPointer first,
                                      ItemPointer last) {
#if PG_VERSION_NUM >= 190000
  return table_beginscan_tidrange(table, snapshot, first, last, SO_NONE);
#else
  return table_beginscan_tidrange(table, snapshot, first, last);
#endif
}

#if PG_VERSION_NUM >= 190000
using BufferLock = BufferLockMode;
#else
using BufferLock = int;
#endif

inline RangeType* make_id_range(TypeCacheEntry* type, RangeBound* lower, RangeBound* upper,
                                bool empty) {
#if PG_VERSION_NUM >= 160000
  return make_range(type, lower, upper, empty, nullptr);
#else
  return make_range(type, lower, upper, empty);
#endif
}

// GUC_ALLOW_IN_PARALLEL lets a parallel query load the library with the configured values. With
// minor releases that lack GUC_ALLOW_IN_PARALLEL, a session does not mint if a parallel query has
// loaded the library.
#ifdef GUC_ALLOW_IN_PARALLEL
inline constexpr int kSetInParallel = GUC_ALLOW_IN_PARALLEL;
#else
inline constexpr int kSetInParallel = 0;
#endif

// Returns the number of the wait event that pg_stat_activity shows with the name `name`. Before
// PostgreSQL 17, all wait events of extensions have the same name.
inline uint32 wait_event_named(uint32* event, [[maybe_unused]] const char* name) {
#if PG_VERSION_NUM >= 170000
  if (*event == 0) *event = WaitEventExtensionNew(name);
  return *event;
#else
  *event = PG_WAIT_EXTENSION;
  return *event;
#endif
}
inline uint32 clock_wait_event() {
  static uint32 event = 0;
  return wait_event_named(&event, "SnowflakeClock");
}
inline uint32 lease_wait_event() {
  static uint32 event = 0;
  return wait_event_named(&event, "SnowflakeLease");
}

}  // namespace snowflake::pg

// Defines the exported C function `snowflake_NAME` of an SQL function.
#define SF_SQL_FUNCTION(name)            \
  extern "C" {                           \
  PG_FUNCTION_INFO_V1(snowflake_##name); \
  }                                      \
  extern "C" PGDLLEXPORT Datum snowflake_##name([[maybe_unused]] PG_FUNCTION_ARGS)
