build/asan/permutation_test.o: core/permutation_test.cpp \
 ../src/core/permutation.hpp ../src/core/numeral.hpp \
 ../src/core/base62_wide.hpp ../src/core/base62.hpp support.hpp \
 ../src/core/layout.hpp ../src/core/shard.hpp
../src/core/permutation.hpp:
../src/core/numeral.hpp:
../src/core/base62_wide.hpp:
../src/core/base62.hpp:
support.hpp:
../src/core/layout.hpp:
../src/core/shard.hpp:
