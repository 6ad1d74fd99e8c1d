/* The sequential baseline of spmv: as many entries an iteration, whatever the rows. sequential.h does the rest. */
#define HEADER_WORDS 3 /* rows columns nonzeros */
#include "sequential.h"

enum { BLOCK = 4096 };

static void describe(struct problem *problem)
{
    const int32_t rows = problem->header[0], columns = problem->header[1], nonzeros = problem->header[2];
    if (rows < 1 || columns < 1 || nonzeros < 1)
        return;
    problem->input_type = problem->output_type = BYTES;
    problem->inputs = 4 * ((size_t)rows + 1 + 2 * (size_t)nonzeros + (size_t)columns);
    problem->outputs = 4 * (size_t)rows;
    problem->iterations = (nonzeros + BLOCK - 1) / BLOCK;
}

/* The row in which entry k lies: the last one that begins at k or before. */
static size_t row_of(const int32_t *p, size_t rows, size_t k)
{
    size_t low = 0, high = rows;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if ((size_t)p[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void iterate(const struct problem *problem, long long block)
{
    const size_t rows = (size_t)problem->header[0], nonzeros = (size_t)problem->header[2];
    const int32_t *p = tensor_at(problem, 0), *j = p + rows + 1;
    const float *v = tensor_at(problem, 4 * (rows + 1 + nonzeros)), *x = v + nonzeros;
    float *y = output_at(problem, 0);
    const size_t first = (size_t)block * BLOCK, end = first + BLOCK < nonzeros ? first + BLOCK : nonzeros;
    size_t row = row_of(p, rows, first);
    for (size_t k = first; k < end; row++) {
        const size_t stop = (size_t)p[row + 1] < end ? (size_t)p[row + 1] : end;
        float sum = 0.0f;
        for (; k < stop; k++)
            sum += v[k] * x[j[k]];
        y[row] += sum;
    }
}
