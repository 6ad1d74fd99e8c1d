/* The sequential baseline of saxpy: a block of numbers an iteration. sequential.h does the rest. */
#define HEADER_WORDS 2 /* n a */
#include "sequential.h"

enum { BLOCK = 65536 };

static void describe(struct problem *problem)
{
    const int32_t n = problem->header[0];
    if (n < 1)
        return;
    problem->inputs = 2 * (size_t)n;
    problem->outputs = (size_t)n;
    problem->iterations = (n + BLOCK - 1) / BLOCK;
}

static void iterate(const struct problem *problem, long long block)
{
    const size_t n = (size_t)problem->header[0], first = (size_t)block * BLOCK;
    const size_t end = first + BLOCK < n ? first + BLOCK : n;
    const float a = header_float(problem, 1), *x = problem->input, *y = x + n;
    for (size_t i = first; i < end; i++)
        problem->output[i] = a * x[i] + y[i];
}
