build/plain/uuid_test.o: core/uuid_test.cpp ../src/core/uuid.hpp \
 ../src/core/base32.hpp ../src/core/numeral.hpp ../src/core/layout.hpp \
 support.hpp ../src/core/shard.hpp
../src/core/uuid.hpp:
../src/core/base32.hpp:
../src/core/numeral.hpp:
../src/core/layout.hpp:
support.hpp:
../src/core/shard.hpp:
