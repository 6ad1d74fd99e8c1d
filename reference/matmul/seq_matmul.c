/* The sequential baseline of matmul: C = A B, a row of C an iteration. sequential.h does the rest.
 *
 * The loop over k is outside the one over columns, so that B is read along its rows and the inner loop vectorises; the
 * textbook order, a dot product for each element, walks down the columns of B and is several times slower.
 */
#define HEADER_WORDS 3 /* M N K */
#include "sequential.h"

static void describe(struct problem *problem)
{
    const int32_t m = problem->header[0], n = problem->header[1], k = problem->header[2];
    if (m < 1 || n < 1 || k < 1)
        return;
    problem->inputs = (size_t)m * (size_t)k + (size_t)k * (size_t)n;
    problem->outputs = (size_t)m * (size_t)n;
    problem->iterations = m;
}

static void iterate(const struct problem *problem, long long row)
{
    const size_t n = (size_t)problem->header[1], depth = (size_t)problem->header[2];
    const float *a = problem->input + (size_t)row * depth;
    const float *b = problem->input + (size_t)problem->header[0] * depth;
    float *restrict c = problem->output + (size_t)row * n;
    for (size_t k = 0; k < depth; k++)
        for (size_t j = 0; j < n; j++)
            c[j] += a[k] * b[k * n + j];
}
