build/plain/key_file_test.o: core/key_file_test.cpp \
 ../src/../alias/src/key_file.hpp support.hpp ../src/core/layout.hpp \
 ../src/core/shard.hpp
../src/../alias/src/key_file.hpp:
support.hpp:
../src/core/layout.hpp:
../src/core/shard.hpp:
