/* The sequential baseline of convolution: a row of the result an iteration. sequential.h does the rest. */
#define HEADER_WORDS 3 /* rows columns K */
#include "sequential.h"

static void describe(struct problem *problem)
{
    const int32_t rows = problem->header[0], columns = problem->header[1], k = problem->header[2];
    if (rows < 1 || columns < 1 || k < 1)
        return;
    problem->outputs = (size_t)rows * (size_t)columns;
    problem->inputs = problem->outputs + (size_t)(k * k);
    problem->iterations = rows;
}

static void iterate(const struct problem *problem, long long row)
{
    const long long rows = problem->header[0], columns = problem->header[1], k = problem->header[2];
    const float *x = problem->input, *f = x + rows * columns;
    float *y = problem->output + row * columns;
    for (long long a = 0; a < k; a++) {
        const long long i = row + a - k / 2;
        if (i < 0 || i >= rows)
            continue;
        for (long long b = 0; b < k; b++) {
            const long long first = b < k / 2 ? k / 2 - b : 0, end = b > k / 2 ? columns - (b - k / 2) : columns;
            for (long long j = first; j < end; j++)
                y[j] += f[a * k + b] * x[i * columns + j + b - k / 2];
        }
    }
}
