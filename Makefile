# make && sudo make install && make installcheck; PG_CONFIG=/path/to/pg_config picks the server.
srcdir ?= .
EXTENSION = snowflake
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/snowflake.control)
DATA_built = snowflake--$(EXTVERSION).sql
# The install script is its parts in their order; privileges come last, for all that is there by then.
SQL_PARTS = $(addprefix $(srcdir)/src/sql/, extension.sql adopt.sql observe_all.sql backfill.sql partitions.sql \
	alter_shards.sql privileges.sql)

MODULE_big = snowflake
OBJS = \
	src/pg/admin.o \
	src/pg/bounds.o \
	src/pg/by_shard.o \
	src/pg/clock_bounds.o \
	src/pg/clock_watch.o \
	src/pg/commit_wait.o \
	src/pg/condition.o \
	src/pg/create_extension.o \
	src/pg/database_state.o \
	src/pg/decode.o \
	src/pg/drop_guard.o \
	src/pg/dumped_seal.o \
	src/pg/errors.o \
	src/pg/errors_clock_error.o \
	src/pg/errors_input.o \
	src/pg/errors_lease.o \
	src/pg/errors_outside.o \
	src/pg/errors_routing.o \
	src/pg/explain.o \
	src/pg/fleet_check.o \
	src/pg/health.o \
	src/pg/high_water.o \
	src/pg/lease.o \
	src/pg/lease_status.o \
	src/pg/lock_guard.o \
	src/pg/log_messages.o \
	src/pg/lost_marks.o \
	src/pg/mark_guard.o \
	src/pg/mint.o \
	src/pg/module.o \
	src/pg/pending_counters.o \
	src/pg/postmaster_memory.o \
	src/pg/seal_check.o \
	src/pg/sequence_page.o \
	src/pg/session_events.o \
	src/pg/set_id.o \
	src/pg/settings.o \
	src/pg/shared_state.o \
	src/pg/state_sequences.o \
	src/pg/statistics.o \
	src/pg/statistics_views.o \
	src/pg/text.o \
	src/pg/text_forms.o \
	src/pg/uuid.o \
	src/pg/views.o \
	src/pg/wait.o

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
SERVER_HEADERS := $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)

# What is missing is said in one line, before anything is compiled.
ifeq ($(PGXS),)
$(error "$(PG_CONFIG)" cannot be run: set PG_CONFIG to the pg_config of a PostgreSQL server)
endif
NEEDED = $(SERVER_HEADERS)/postgres.h $(PGXS)
MISSING := $(firstword $(filter-out $(wildcard $(NEEDED)),$(NEEDED)))
ifneq ($(MISSING),)
$(error $(MISSING) is missing: install the server's development files (on Debian postgresql-server-dev-$(shell \
	$(PG_CONFIG) --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')), or set PG_CONFIG to another server's pg_config)
endif

# The server's headers come with -isystem, first: their warnings are not ours to mend.
# Linked by the C++ compiler, but nothing of its runtime is needed: no exceptions, no RTTI.
CXX_DIALECT = -std=c++20 -fno-exceptions -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden \
	-Wno-register
# The server passes its own compiler's warning options, of which another may not know all. The place
# of the build stays out of the result: two builds of one commit are the same library.
NO_PLACE = -ffile-prefix-map=$(abspath $(srcdir))=. -ffile-prefix-map=$(CURDIR)=.
PG_CXXFLAGS = $(CXX_DIALECT) $(NO_PLACE) -Wextra -Wshadow -Wno-missing-field-initializers \
	-Wno-unknown-warning-option $(WERROR)
PG_CPPFLAGS = -I$(srcdir)/src -isystem $(SERVER_HEADERS) \
	-DSNOWFLAKE_VERSION='"$(EXTVERSION)"'

# The module must be preloaded, so the tests bring servers of their own, from what is installed:
# pg_regress a temporary one, each file below t/ what it needs (PostgreSQL built with TAP support).
REGRESS_OPTS = --temp-instance=./tmp_check --temp-config=$(srcdir)/test/snowflake.conf \
	--load-extension=snowflake
REGRESS = $(patsubst $(srcdir)/sql/%.sql,%,$(sort $(wildcard $(srcdir)/sql/*.sql)))
ENCODING = UTF8
NO_LOCALE = yes
TAP_TESTS = yes

include $(PGXS)

snowflake--$(EXTVERSION).sql: $(SQL_PARTS) $(srcdir)/Makefile $(srcdir)/snowflake.control
	printf '%s\n' '/* $@ */' '' \
	  '\echo Use "CREATE EXTENSION snowflake" to load this file. \quit' '' >$@
	cat $(SQL_PARTS) >>$@

# PGXS compiles bitcode without PG_CXXFLAGS, and knows no dependencies on headers.
BITCODE_CXXFLAGS += $(CXX_DIALECT) $(NO_PLACE) $(WERROR)
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir)/src/*/*.hpp) $(srcdir)/Makefile

# The compiler is the one that the server was built with, unless CXX is given.
CXX20 = \#include <bit>\n\#include <concepts>\nconstinit int n = std::popcount(1u);\n
$(OBJS) $(OBJS:.o=.bc): | cxx20
cxx20:
	@printf '$(CXX20)' | $(CXX) -std=c++20 -fsyntax-only -x c++ - 2>/dev/null || \
		{ echo '"$(CXX)" is missing or no C++20 compiler: install g++ 12 or later, or set CXX (clang++ 14 or later)' >&2; exit 1; }
.PHONY: cxx20

# A build outside the source tree, as Debian's packages do it, has no such directory yet.
$(shell mkdir -p $(sort $(dir $(OBJS))))

# The archive of the commit that is checked out, for PGXN. The same bytes anywhere: a zip has local times.
dist_dir = dist
dist:
	mkdir -p $(dist_dir)
	TZ=UTC git -C $(srcdir) archive --format=zip --prefix=$(EXTENSION)-$(EXTVERSION)/ \
		-o $(abspath $(dist_dir))/$(EXTENSION)-$(EXTVERSION).zip HEAD
.PHONY: dist
