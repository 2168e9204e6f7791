# Common parts of the Makefiles in extensions/. Each Makefile sets its names, then includes this file, which includes
# PGXS. First install the extension snowflake from the top directory, then run make && sudo make install && make
# installcheck. PG_CONFIG=/path/to/pg_config selects the PostgreSQL server.
srcdir ?= .
top = $(srcdir)/../..
PG_CONFIG ?= pg_config
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/$(EXTENSION).control)

# The install script consists of these parts. $(EXTENSION).sql installs the same parts in the same order without an
# extension.
PARTS = $(addprefix $(srcdir)/,$(shell sed -n 's/^\\ir //p' $(srcdir)/$(EXTENSION).sql 2>/dev/null))
ifneq ($(PARTS),)
DATA_built = $(EXTENSION)--$(EXTVERSION).sql
endif

# For the reasons for these options, see the Makefile in the top directory.
CXX_DIALECT = -std=c++20 -fno-exceptions -fno-rtti -fvisibility=hidden -Wno-register
NO_PLACE = -ffile-prefix-map=$(abspath $(top))=. -ffile-prefix-map=$(abspath $(CURDIR)/../..)=.
PG_CXXFLAGS = $(CXX_DIALECT) $(NO_PLACE) -Wextra -Wshadow -Wno-missing-field-initializers \
	-Wno-unknown-warning-option $(WERROR)
PG_CPPFLAGS = -I$(srcdir)/src -I$(top)/src $(LIBRARY_CPPFLAGS) -isystem $(shell $(PG_CONFIG) --includedir-server) \
	-DSNOWFLAKE_VERSION='"$(EXTVERSION)"'

# SQL and TAP tests start their own servers.
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
