/* The sequential baseline of multihead: attention by heads, causal or full. sequential.h does the rest.
 *
 * A row's scores are kept, exponentiated, used. With the mask, row i costs i + 1 keys, so an iteration is two rows that
 * together always cost the same: row i and row N - 1 - i of a head. (The middle row of an odd N comes twice.)
 */
#define HEADER_WORDS 6 /* B H N d causal scale */
#include "sequential.h"

enum { MOST_ROWS = 32768 };

static void describe(struct problem *problem)
{
    const int32_t *h = problem->header;
    if (h[0] < 1 || h[1] < 1 || h[2] < 1 || h[2] > MOST_ROWS || h[3] < 1)
        return;
    const long long heads = (long long)h[0] * h[1];
    problem->outputs = (size_t)heads * (size_t)h[2] * (size_t)h[3];
    problem->inputs = 3 * problem->outputs;
    problem->iterations = heads * ((h[2] + 1) / 2);
}

static void attend(float *o, const float *q, const float *k, const float *v, size_t keys, size_t d, float scale)
{
    static float p[MOST_ROWS];
    float most = -INFINITY, sum = 0.0f;
    for (size_t j = 0; j < keys; j++) {
        float s = 0.0f;
        for (size_t x = 0; x < d; x++)
            s += q[x] * k[j * d + x];
        p[j] = s * scale;
        most = p[j] > most ? p[j] : most;
    }
    for (size_t x = 0; x < d; x++)
        o[x] = 0.0f;
    for (size_t j = 0; j < keys; j++)
        sum += p[j] = expf(p[j] - most);
    for (size_t j = 0; j < keys; j++)
        for (size_t x = 0; x < d; x++)
            o[x] += p[j] * v[j * d + x];
    for (size_t x = 0; x < d; x++)
        o[x] /= sum;
}

static void iterate(const struct problem *problem, long long iteration)
{
    const size_t n = (size_t)problem->header[2], d = (size_t)problem->header[3], pairs = (n + 1) / 2;
    const size_t head = (size_t)iteration / pairs, first = (size_t)iteration % pairs, rows[2] = {first, n - 1 - first};
    const float *q = problem->input + 3 * head * n * d, *k = q + n * d, *v = k + n * d;
    float *o = problem->output + head * n * d;
    for (int i = 0; i < 2; i++) {
        const size_t keys = problem->header[4] ? rows[i] + 1 : n;
        attend(o + rows[i] * d, q + rows[i] * d, k, v, keys, d, header_float(problem, 5));
    }
}
