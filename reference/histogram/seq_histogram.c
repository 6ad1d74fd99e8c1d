/* The sequential baseline of histogram: a block of values an iteration. sequential.h does the rest. */
#define HEADER_WORDS 1 /* n */
#include "sequential.h"

enum { BLOCK = 65536, BINS = 256 };

static void describe(struct problem *problem)
{
    const int32_t n = problem->header[0];
    if (n < 1)
        return;
    problem->input_type = problem->output_type = BYTES;
    problem->inputs = (size_t)n;
    problem->outputs = BINS * sizeof(int32_t);
    problem->iterations = (n + BLOCK - 1) / BLOCK;
}

static void iterate(const struct problem *problem, long long block)
{
    const size_t n = (size_t)problem->header[0], first = (size_t)block * BLOCK;
    const size_t end = first + BLOCK < n ? first + BLOCK : n;
    const unsigned char *x = tensor_at(problem, 0);
    int32_t *count = output_at(problem, 0);
    for (size_t i = first; i < end; i++)
        count[x[i]]++;
}
