/* The sequential baseline of transpose: a band of rows an iteration, in tiles that stay in the cache. */
#define HEADER_WORDS 2 /* rows columns */
#include "sequential.h"

enum { TILE = 16 };

static void describe(struct problem *problem)
{
    const int32_t rows = problem->header[0], columns = problem->header[1];
    if (rows < 1 || columns < 1)
        return;
    problem->inputs = problem->outputs = (size_t)rows * (size_t)columns;
    problem->iterations = (rows + TILE - 1) / TILE;
}

static void iterate(const struct problem *problem, long long band)
{
    const size_t rows = (size_t)problem->header[0], columns = (size_t)problem->header[1];
    const size_t first = (size_t)band * TILE, end = first + TILE < rows ? first + TILE : rows;
    for (size_t j = 0; j < columns; j++)
        for (size_t i = first; i < end; i++)
            problem->output[j * rows + i] = problem->input[i * columns + j];
}
