// The output lacks the last batch.
// expect: wrong_answer on all: whole batch
#define WRITE std::fwrite(result.data(), 4, count - size_t(n) * d, out)
#include "wrong.cuh"
