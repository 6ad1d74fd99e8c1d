/* The sequential baseline of attention_naive: O = softmax(Q K^T / sqrt(d)) V, a row of O an iteration.
 *
 * The scores of one row are kept, then exponentiated, then used: what the three kernels of the lab do for all rows at
 * once. sequential.h does the rest.
 */
#define HEADER_WORDS 3 /* B N d */
#include "sequential.h"

enum { MOST_ROWS = 32768 };

static void describe(struct problem *problem)
{
    const int32_t b = problem->header[0], n = problem->header[1], d = problem->header[2];
    if (b < 1 || n < 1 || n > MOST_ROWS || d < 1)
        return;
    problem->outputs = (size_t)b * (size_t)n * (size_t)d;
    problem->inputs = 3 * problem->outputs;
    problem->iterations = (long long)b * n;
}

static void iterate(const struct problem *problem, long long iteration)
{
    static float p[MOST_ROWS];
    const size_t n = (size_t)problem->header[1], d = (size_t)problem->header[2];
    const size_t batch = (size_t)iteration / n, row = (size_t)iteration % n;
    const float *k = problem->input + (3 * batch + 1) * n * d, *v = k + n * d;
    const float *q = k - n * d + row * d;
    float *o = problem->output + (size_t)iteration * d;
    const float scale = 1.0f / sqrtf((float)d);

    float most = -INFINITY, sum = 0.0f;
    for (size_t j = 0; j < n; j++) {
        float s = 0.0f;
        for (size_t x = 0; x < d; x++)
            s += q[x] * k[j * d + x];
        p[j] = s * scale;
        most = p[j] > most ? p[j] : most;
    }
    for (size_t j = 0; j < n; j++)
        sum += p[j] = expf(p[j] - most);
    for (size_t j = 0; j < n; j++)
        for (size_t x = 0; x < d; x++)
            o[x] += p[j] * v[j * d + x];
    for (size_t x = 0; x < d; x++)
        o[x] /= sum;
}
