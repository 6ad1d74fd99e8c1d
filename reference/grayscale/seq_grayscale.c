/* The sequential baseline of grayscale: a row of pixels an iteration. sequential.h does the rest. */
#define HEADER_WORDS 2 /* height width */
#include "sequential.h"

static void describe(struct problem *problem)
{
    const int32_t height = problem->header[0], width = problem->header[1];
    if (height < 1 || width < 1)
        return;
    problem->input_type = problem->output_type = BYTES;
    problem->outputs = (size_t)height * (size_t)width;
    problem->inputs = 3 * problem->outputs;
    problem->iterations = height;
}

static void iterate(const struct problem *problem, long long row)
{
    const size_t width = (size_t)problem->header[1];
    const unsigned char *p = tensor_at(problem, (size_t)row * width * 3);
    unsigned char *g = output_at(problem, (size_t)row * width);
    for (size_t x = 0; x < width; x++, p += 3)
        g[x] = (unsigned char)((77 * p[0] + 150 * p[1] + 29 * p[2] + 128) >> 8);
}
