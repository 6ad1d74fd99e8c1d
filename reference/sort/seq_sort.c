/* The sequential baseline of sort: a radix sort by bytes, a pass an iteration. sequential.h does the rest. */
#define HEADER_WORDS 1 /* n */
#include "sequential.h"

enum { PASSES = 4, DIGITS = 256 };

static void describe(struct problem *problem)
{
    const int32_t n = problem->header[0];
    if (n < 1)
        return;
    problem->input_type = problem->output_type = BYTES;
    problem->inputs = problem->outputs = 4 * (size_t)n;
    problem->iterations = PASSES;
}

static void iterate(const struct problem *problem, long long pass)
{
    static uint32_t *other;
    const size_t n = (size_t)problem->header[0];
    uint32_t *output = output_at(problem, 0);
    if (!other && !(other = malloc(n * sizeof *other)))
        fail("a second array", "not enough memory");
    const uint32_t *from = pass == 0 ? tensor_at(problem, 0) : pass % 2 ? other : output;
    uint32_t *to = pass % 2 ? output : other;
    size_t place[DIGITS] = {0}, before = 0;
    const uint32_t sign = pass == PASSES - 1 ? 0x80 : 0; /* the highest byte of negative numbers comes first */
    for (size_t i = 0; i < n; i++)
        place[(from[i] >> 8 * pass & 255) ^ sign]++;
    for (int digit = 0; digit < DIGITS; digit++) {
        const size_t count = place[digit];
        place[digit] = before;
        before += count;
    }
    for (size_t i = 0; i < n; i++)
        to[place[(from[i] >> 8 * pass & 255) ^ sign]++] = from[i];
}
