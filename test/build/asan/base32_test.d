build/asan/base32_test.o: core/base32_test.cpp ../src/core/base32.hpp \
 ../src/core/numeral.hpp support.hpp ../src/core/layout.hpp \
 ../src/core/shard.hpp
../src/core/base32.hpp:
../src/core/numeral.hpp:
support.hpp:
../src/core/layout.hpp:
../src/core/shard.hpp:
