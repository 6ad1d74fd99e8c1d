/* The sequential baseline of stencil3d: a step an iteration. sequential.h does the rest. */
#define HEADER_WORDS 4 /* nx ny nz steps */
#include "sequential.h"

static float *other; /* the array that takes turns with the output */

static void describe(struct problem *problem)
{
    const int32_t *h = problem->header;
    if (h[0] < 1 || h[1] < 1 || h[2] < 1 || h[3] < 1)
        return;
    problem->inputs = problem->outputs = (size_t)h[0] * (size_t)h[1] * (size_t)h[2];
    problem->iterations = h[3];
    if (!(other = malloc(problem->outputs * sizeof(float))))
        fail("a second array", "not enough memory");
}

/* Two arrays take turns, and the last step has to end in the output. */
static void iterate(const struct problem *problem, long long step)
{
    const size_t nx = (size_t)problem->header[0], ny = (size_t)problem->header[1], nz = (size_t)problem->header[2];
    const size_t plane = nx * ny, bytes = plane * nz * sizeof(float);
    const int to_output = (problem->header[3] - step) % 2;
    const float *u = step == 0 ? problem->input : to_output ? other : problem->output;
    float *v = to_output ? problem->output : other;
    memcpy(v, u, bytes);
    for (size_t z = 1; z + 1 < nz; z++)
        for (size_t y = 1; y + 1 < ny; y++) {
            const float *c = u + z * plane + y * nx;
            float *to = v + z * plane + y * nx;
            for (size_t x = 1; x + 1 < nx; x++)
                to[x] = c[x] + (c[x - 1] + c[x + 1] + c[x - nx] + c[x + nx] + c[x - plane] + c[x + plane] - 6.0f * c[x]) / 8.0f;
        }
}
