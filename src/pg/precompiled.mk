# Included by the Makefiles in the top directory and in extensions/, after PGXS. $(sources) is the path of src/.
#
# With PRECOMPILED=object, PostgreSQL's headers are compiled only once, which saves two thirds of the time. The machine
# code is the same, but the debugging information differs. Such a build cannot detect a missing #include, because all
# headers are included in every file. Released builds therefore do not set PRECOMPILED.

# Each compiler has its own precompiled header, because no compiler can read the header of another.
precompiled_object := build/precompiled/object-$(notdir $(firstword $(CXX))).hpp
precompiled_headers := $(wildcard $(sources)/*/*.hpp $(sources)/*/*/*.hpp)
build/precompiled/%.hpp: $(precompiled_headers) $(sources)/pg/precompiled.mk
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(patsubst $(sources)/%,%,$(filter $(sources)/core/%,$(precompiled_headers))) \
	  pg/server/postgres.hpp >$@

ifneq ($(filter object,$(PRECOMPILED)),)
$(precompiled_object).gch: $(precompiled_object)
	$(CXX) $(CXXFLAGS) $(CPPFLAGS) -x c++-header -o $@ $<
$(OBJS): $(precompiled_object).gch
$(OBJS): private override CXXFLAGS += -include $(precompiled_object)
endif
