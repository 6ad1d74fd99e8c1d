/* The sequential baseline of scan_float: a block of numbers an iteration, which goes on where the last one ended. */
#define HEADER_WORDS 1 /* n */
#include "sequential.h"

enum { BLOCK = 65536 };

static void describe(struct problem *problem)
{
    const int32_t n = problem->header[0];
    if (n < 1)
        return;
    problem->inputs = problem->outputs = (size_t)n;
    problem->iterations = (n + BLOCK - 1) / BLOCK;
}

static void iterate(const struct problem *problem, long long block)
{
    const size_t n = (size_t)problem->header[0], first = (size_t)block * BLOCK;
    const size_t end = first + BLOCK < n ? first + BLOCK : n;
    double sum = first ? problem->output[first - 1] : 0;
    for (size_t i = first; i < end; i++)
        problem->output[i] = (float)(sum += problem->input[i]);
}
