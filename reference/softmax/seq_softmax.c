/* The sequential baseline of softmax: three passes over a row, a row an iteration. sequential.h does the rest. */
#define HEADER_WORDS 2 /* rows columns */
#include "sequential.h"

static void describe(struct problem *problem)
{
    const int32_t rows = problem->header[0], columns = problem->header[1];
    if (rows < 1 || columns < 1)
        return;
    problem->inputs = problem->outputs = (size_t)rows * (size_t)columns;
    problem->iterations = rows;
}

static void iterate(const struct problem *problem, long long row)
{
    const size_t columns = (size_t)problem->header[1];
    const float *x = problem->input + (size_t)row * columns;
    float *y = problem->output + (size_t)row * columns;
    float most = x[0], sum = 0.0f;
    for (size_t j = 1; j < columns; j++)
        most = x[j] > most ? x[j] : most;
    for (size_t j = 0; j < columns; j++)
        sum += y[j] = expf(x[j] - most);
    for (size_t j = 0; j < columns; j++)
        y[j] /= sum;
}
