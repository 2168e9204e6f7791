// Headers of src/core come before PostgreSQL's headers, because macros of PostgreSQL would break
// the headers of src/core.
#pragma once

#include "core/clock.hpp"
#include "core/lease_memory.hpp"
#include "pg/memory/lease_port.hpp"

#include <libpq-fe.h>

extern "C" {
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "pgstat.h"
#include "postmaster/bgworker_internals.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/pg_shmem.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pidfile.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif
