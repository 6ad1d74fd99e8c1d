/* The sequential baseline of cross_entropy: a row an iteration, with floats in between. sequential.h does the rest. */
#define HEADER_WORDS 2 /* rows classes */
#include "sequential.h"

static void describe(struct problem *problem)
{
    const int32_t rows = problem->header[0], classes = problem->header[1];
    if (rows < 1 || classes < 1)
        return;
    const size_t values = (size_t)rows * (size_t)classes;
    problem->input_type = problem->output_type = BYTES;
    problem->inputs = 2 * values + 8 * (size_t)rows;
    problem->outputs = 4 * (size_t)rows + 2 * values;
    problem->iterations = rows;
}

static void iterate(const struct problem *problem, long long row)
{
    const size_t rows = (size_t)problem->header[0], classes = (size_t)problem->header[1], r = (size_t)row;
    const uint16_t *l = (const uint16_t *)tensor_at(problem, 0) + r * classes;
    uint16_t *gradient = (uint16_t *)output_at(problem, 4 * rows) + r * classes;
    int64_t target;
    memcpy(&target, tensor_at(problem, 2 * rows * classes + 8 * r), sizeof target);
    float most = bits_float((uint32_t)l[0] << 16), sum = 0.0f;
    for (size_t j = 1; j < classes; j++)
        most = fmaxf(most, bits_float((uint32_t)l[j] << 16));
    for (size_t j = 0; j < classes; j++)
        sum += expf(bits_float((uint32_t)l[j] << 16) - most);
    ((float *)output_at(problem, 0))[r] = logf(sum) - (bits_float((uint32_t)l[target] << 16) - most);
    for (size_t j = 0; j < classes; j++) {
        const float p = expf(bits_float((uint32_t)l[j] << 16) - most) / sum;
        gradient[j] = encoded((p - (j == (size_t)target)) / (float)rows, BF16);
    }
}
