# Shared by the Makefiles in extensions/. Each sets its names and includes this file, which includes PGXS.
# make && sudo make install && make installcheck, after the same at the top; PG_CONFIG=/path/to/pg_config chooses the server.
srcdir ?= .
top = $(srcdir)/../..
PG_CONFIG ?= pg_config
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/$(EXTENSION).control)

# The parts of the install script. $(EXTENSION).sql, which installs without an extension, reads the same parts in the same
# order.
PARTS = $(addprefix $(srcdir)/,$(shell sed -n 's/^\\ir //p' $(srcdir)/$(EXTENSION).sql 2>/dev/null))
ifneq ($(PARTS),)
DATA_built = $(EXTENSION)--$(EXTVERSION).sql
endif

# The options for a library are those of the Makefile at the top, which gives the reasons.
CXX_DIALECT = -std=c++20 -fno-exceptions -fno-rtti -fvisibility=hidden -Wno-register
NO_PLACE = -ffile-prefix-map=$(abspath $(top))=. -ffile-prefix-map=$(abspath $(CURDIR)/../..)=.
PG_CXXFLAGS = $(CXX_DIALECT) $(NO_PLACE) -Wextra -Wshadow -Wno-missing-field-initializers \
	-Wno-unknown-warning-option $(WERROR)
PG_CPPFLAGS = -I$(srcdir)/src -I$(top)/src $(LIBRARY_CPPFLAGS) -isystem $(shell $(PG_CONFIG) --includedir-server) \
	-DSNOWFLAKE_VERSION='"$(EXTVERSION)"'

# Both kinds of tests start servers of their own.
SERVER_CONF ?= $(top)/test/snowflake.conf
REGRESS_OPTS = --temp-instance=./tmp_check --temp-config=$(SERVER_CONF)
REGRESS = $(patsubst $(srcdir)/sql/%.sql,%,$(sort $(wildcard $(srcdir)/sql/*.sql)))
ENCODING = UTF8
NO_LOCALE = yes
TAP_TESTS = yes
EXTRA_CLEAN += build

PGXS := $(shell $(PG_CONFIG) --pgxs)
override with_llvm = no
include $(PGXS)

ifneq ($(PARTS),)
$(DATA_built): $(PARTS) $(srcdir)/$(EXTENSION).sql $(srcdir)/$(EXTENSION).control
	printf '%s\n' '/* $@ */' '' \
	  '\echo Use "CREATE EXTENSION $(EXTENSION)" to load this file. \quit' '' >$@
	cat $(PARTS) >>$@
endif

ifdef MODULE_big
$(OBJS): $(wildcard $(srcdir)/src/*.hpp $(top)/src/*/*.hpp $(top)/src/*/*/*.hpp) \
	$(srcdir)/Makefile $(srcdir)/../common.mk
sources = $(top)/src
include $(sources)/pg/precompiled.mk
$(shell mkdir -p $(sort $(dir $(OBJS))))
endif
