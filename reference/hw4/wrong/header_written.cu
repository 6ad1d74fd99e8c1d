// The output begins with the input's header.
// expect: wrong_answer on all: the input's header
#define WRITE (std::fwrite(shape, 4, 3, out), std::fwrite(result.data(), 4, count, out))
#include "wrong.cuh"
