# Included by the Makefiles at the top and below extensions/, after PGXS; $(sources) is src/.
#
# PRECOMPILED=object: the server's headers are read once, not for each file, which is two thirds of the work. The code is the same. What differs is that no file can be found to lack an #include, and the
# debugging information: what is shipped is built without.

# One compiler does not read another's.
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
