/* The sequential baseline of reduction: a block of numbers an iteration, each with a sum of its own. */
#define HEADER_WORDS 1 /* n */
#include "sequential.h"

enum { BLOCK = 65536 };

static void describe(struct problem *problem)
{
    const int32_t n = problem->header[0];
    if (n < 1)
        return;
    problem->inputs = (size_t)n;
    problem->outputs = 1;
    problem->iterations = (n + BLOCK - 1) / BLOCK;
}

static void iterate(const struct problem *problem, long long block)
{
    const size_t n = (size_t)problem->header[0], first = (size_t)block * BLOCK;
    const size_t end = first + BLOCK < n ? first + BLOCK : n;
    float sum = 0.0f;
    for (size_t i = first; i < end; i++)
        sum += problem->input[i];
    problem->output[0] += sum;
}
