// A batch's result is copied before it is ready: the place holds the result of the batch before.
// expect: wrong_answer on all: is stored as
#include <algorithm>
#define BEFORE_WRITE                                                                        \
    for (size_t size = size_t(n) * d, batch = batches - 1; batch > 0; --batch)              \
        std::copy_n(result.data() + (batch - 1) * size, size, result.data() + batch * size)
#include "wrong.cuh"
