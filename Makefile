# make && sudo make install && make installcheck; PG_CONFIG=/path/to/pg_config chooses the server.
srcdir ?= .
EXTENSION = snowflake extensions/shards/snowflake_shards extensions/migrate/snowflake_migrate
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/snowflake.control)
# The SQL engine mints on servers that cannot load the library. Each preset layout has a script, and a second script for
# pg_tle. See doc/managed.md.
ENGINES = $(foreach layout, fleet wide instagram twitter js53, snowflake_engine_$(layout).sql snowflake_pgtle_$(layout).sql)
SCRIPTS_SQL = $(EXTENSION:%=%--$(EXTVERSION).sql)
DATA_built = $(SCRIPTS_SQL) $(ENGINES)
engine = $(srcdir)/extensions/migrate/src/sql/engine
# Lists the parts of which the SQL script of the extension consists, in their order. The part with privileges is the
# last one, because privileges apply to all objects.
snowflake_parts = $(addprefix src/sql/, take_over.sql state.sql mint.sql decode.sql ranges.sql admin.sql views.sql text_forms.sql \
	by_shard.sql shard_rows.sql adopted.sql drop_guard.sql run_as.sql settled.sql taken_over.sql privileges.sql)
snowflake_shards_parts = $(addprefix extensions/shards/src/sql/, shard_template.sql shard_copies.sql uncopyable.sql create_shards.sql \
	partitions.sql alter_shards.sql privileges.sql)
snowflake_migrate_parts = $(addprefix extensions/migrate/src/sql/, column_ids.sql keys.sql views.sql adopt_checks.sql adopt.sql \
	remaining.sql adopt_schemas.sql observe_all.sql origins.sql backfill.sql audit.sql \
	templates.sql decoder_sql.sql generator_sql.sql privileges.sql)

MODULE_big = snowflake
OBJS = \
	src/pg/checks/clone_check.o \
	src/pg/checks/database_health.o \
	src/pg/checks/dumped_seal.o \
	src/pg/checks/facts.o \
	src/pg/checks/fleet_check.o \
	src/pg/checks/mark_check.o \
	src/pg/checks/read_only.o \
	src/pg/checks/same_ids.o \
	src/pg/checks/seal_check.o \
	src/pg/checks/state_sequences.o \
	src/pg/clock/clock_error.o \
	src/pg/clock/clock_source.o \
	src/pg/clock/clock_watch.o \
	src/pg/clock/commit_wait.o \
	src/pg/clock/lease_wait.o \
	src/pg/clock/synchronization.o \
	src/pg/clock/wait.o \
	src/pg/cursor/prepared_mints.o \
	src/pg/cursor/settled_before.o \
	src/pg/define_settings.o \
	src/pg/errors/cause.o \
	src/pg/errors/errors.o \
	src/pg/errors/errors_clock_error.o \
	src/pg/errors/errors_clone.o \
	src/pg/errors/errors_input.o \
	src/pg/errors/errors_lease.o \
	src/pg/errors/errors_outside.o \
	src/pg/errors/errors_routing.o \
	src/pg/errors/log_messages.o \
	src/pg/errors/refusal.o \
	src/pg/functions/admin.o \
	src/pg/functions/adopted_problem.o \
	src/pg/functions/audit.o \
	src/pg/functions/bounds.o \
	src/pg/functions/column_ids.o \
	src/pg/functions/copy_support.o \
	src/pg/functions/create_extension.o \
	src/pg/functions/decode.o \
	src/pg/functions/explain.o \
	src/pg/functions/health.o \
	src/pg/functions/ids_of_origin.o \
	src/pg/functions/lease_status.o \
	src/pg/functions/mint.o \
	src/pg/functions/next_id_in.o \
	src/pg/functions/refuse.o \
	src/pg/functions/run_as.o \
	src/pg/functions/set_id.o \
	src/pg/functions/set_id_guard.o \
	src/pg/functions/settled_view.o \
	src/pg/functions/shard_for.o \
	src/pg/functions/shard_hash.o \
	src/pg/functions/shard_statement.o \
	src/pg/functions/statistics_views.o \
	src/pg/functions/text_forms.o \
	src/pg/functions/uuid_forms.o \
	src/pg/functions/validate_empty.o \
	src/pg/functions/views.o \
	src/pg/guards/drop_guard.o \
	src/pg/guards/lock_guard.o \
	src/pg/mark/attach.o \
	src/pg/mark/high_water.o \
	src/pg/mark/lost_marks.o \
	src/pg/memory/database_state.o \
	src/pg/memory/lease_state.o \
	src/pg/memory/lease_worker.o \
	src/pg/memory/mark_hold.o \
	src/pg/memory/open_mints.o \
	src/pg/memory/pending_counters.o \
	src/pg/memory/postmaster_memory.o \
	src/pg/memory/shared_state.o \
	src/pg/memory/statistics.o \
	src/pg/module.o \
	src/pg/server/database_settings.o \
	src/pg/server/row.o \
	src/pg/server/sequence_page.o \
	src/pg/server/session_events.o \
	src/pg/server/text.o \
	src/pg/server/wait_budget.o \
	src/pg/server/whereabouts.o \
	src/pg/server/origin_settings.o \
	src/pg/server/rejected_setting.o \
	src/pg/server/session_start.o

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
SERVER_HEADERS := $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)

# Reports a missing requirement of the build in one line, because the compiler would report many errors.
ifeq ($(PGXS),)
$(error "$(PG_CONFIG)" cannot be run: set PG_CONFIG to the pg_config of a PostgreSQL server)
endif
NEEDED = $(SERVER_HEADERS)/postgres.h $(PGXS)
MISSING := $(firstword $(filter-out $(wildcard $(NEEDED)),$(NEEDED)))
ifneq ($(MISSING),)
$(error $(MISSING) is missing: install the server's development files (on Debian postgresql-server-dev-$(shell \
	$(PG_CONFIG) --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')), or set PG_CONFIG to another server's pg_config)
endif

# The option -isystem silences warnings about PostgreSQL's headers. The C++ compiler links the library, which does not
# need the C++ runtime, because exceptions and RTTI are disabled.
CXX_DIALECT = -std=c++20 -fno-exceptions -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden \
	-Wno-register
# -Wno-unknown-warning-option is set because PostgreSQL passes the warning options of its own compiler, which another
# compiler may not support. The option NO_PLACE removes the path of the build from the library, so that two builds of
# one commit make the same library.
NO_PLACE = -ffile-prefix-map=$(abspath $(srcdir))=. -ffile-prefix-map=$(CURDIR)=.
PG_CXXFLAGS = $(CXX_DIALECT) $(NO_PLACE) -Wextra -Wshadow -Wno-missing-field-initializers \
	-Wno-unknown-warning-option $(WERROR)
PG_CPPFLAGS = -I$(srcdir)/src -isystem $(SERVER_HEADERS) \
	-DSNOWFLAKE_VERSION='"$(EXTVERSION)"'

# All tests start their own servers from the installed files. pg_regress starts a temporary server. If PostgreSQL was
# built with TAP support, each file in t/ starts the servers that it needs. If SNOWFLAKE_PRELOAD=off is set, the servers
# of the tests do not preload the library.
REGRESS_OPTS = --temp-instance=./tmp_check --temp-config=$(srcdir)/test/snowflake.conf \
	$(if $(filter off,$(SNOWFLAKE_PRELOAD)),--temp-config=$(srcdir)/test/not_preloaded.conf) --load-extension=snowflake
REGRESS = $(patsubst $(srcdir)/sql/%.sql,%,$(sort $(wildcard $(srcdir)/sql/*.sql)))
ENCODING = UTF8
NO_LOCALE = yes
TAP_TESTS = yes
EXTRA_CLEAN = build

# No bitcode is built, because PostgreSQL's JIT inlines only functions of libraries whose names begin with $libdir/. The
# SQL functions of this extension refer to the library by another name: see doc/versions.md.
override with_llvm = no
include $(PGXS)

# A line @@NAME@@ in a part is replaced by the template NAME of the SQL engine. CREATE FUNCTION becomes CREATE OR
# REPLACE FUNCTION, because take_over.sql may already have made the function a member of the extension.
.SECONDEXPANSION:
$(SCRIPTS_SQL): %--$(EXTVERSION).sql: $$(addprefix $(srcdir)/,$$($$(notdir $$*)_parts)) $(wildcard $(engine)/*.sql) \
		$(srcdir)/Makefile $(srcdir)/snowflake.control
	printf '%s\n' '/* $(@F) */' '' \
	  '\echo Use "CREATE EXTENSION $(*F)" to load this file. \quit' '' >$@
	cat $(addprefix $(srcdir)/,$($(*F)_parts)) | awk -v engine=$(engine)/ \
	  '/^@@.*@@$$/ { file = engine substr($$0, 3, length($$0) - 4); while ((getline line < file) > 0) print line; close(file); next } { sub(/^CREATE FUNCTION/, "CREATE OR REPLACE FUNCTION") } 1' >>$@

$(ENGINES): $(wildcard $(engine)/*.sql) $(srcdir)/scripts/engine-sql
snowflake_engine_%.sql:
	$(srcdir)/scripts/engine-sql --layout $* >$@
snowflake_pgtle_%.sql:
	$(srcdir)/scripts/engine-sql --layout $* --pg-tle --version $(EXTVERSION) >$@

# All objects depend on all headers, because PGXS does not track which headers a file includes.
$(OBJS): $(wildcard $(srcdir)/src/*/*.hpp $(srcdir)/src/*/*/*.hpp) $(srcdir)/Makefile

sources = $(srcdir)/src
include $(sources)/pg/precompiled.mk

# Checks that the compiler supports C++20. Uses the compiler that built PostgreSQL, unless CXX is set.
CXX20 = \#include <bit>\n\#include <concepts>\nconstinit int n = std::popcount(1u);\n
$(OBJS): | cxx20
cxx20:
	@printf '$(CXX20)' | $(CXX) -std=c++20 -fsyntax-only -x c++ - 2>/dev/null || \
		{ echo '"$(CXX)" is missing or no C++20 compiler: install g++ 12 or later, or set CXX (clang++ 14 or later)' >&2; exit 1; }
.PHONY: cxx20

# Makes the directories for object files, because a build outside of the source tree, as for Debian packages, has none.
$(shell mkdir -p $(sort $(dir $(OBJS) $(EXTENSION))))

# Writes the archive of the current commit for PGXN. The variable TZ is set because a zip file contains local times, and
# the archive must have the same bytes on each machine.
dist_dir = dist
dist:
	mkdir -p $(dist_dir)
	TZ=UTC git -C $(srcdir) archive --format=zip --prefix=snowflake-$(EXTVERSION)/ \
		-o $(abspath $(dist_dir))/snowflake-$(EXTVERSION).zip HEAD
.PHONY: dist

# Installs the headers of src/core for programs without PostgreSQL, below DESTDIR and prefix. See doc/core.md.
install-core uninstall-core: %-core:
	$(MAKE) -C $(srcdir)/src/core $*
.PHONY: install-core uninstall-core
