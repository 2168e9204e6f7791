build/plain/base62_test.o: core/base62_test.cpp ../src/core/base62.hpp \
 ../src/core/numeral.hpp support.hpp ../src/core/layout.hpp \
 ../src/core/shard.hpp
../src/core/base62.hpp:
../src/core/numeral.hpp:
support.hpp:
../src/core/layout.hpp:
../src/core/shard.hpp:
