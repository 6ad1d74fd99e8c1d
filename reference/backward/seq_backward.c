/* The sequential baseline of backward: attention and its gradient, a row of Q an iteration. sequential.h does the rest.
 *
 *   p = softmax(q K^T / sqrt(d))     o = p V     D = do . o
 *   for each key j:  ds = p_j (do . v_j - D) / sqrt(d)     dq += ds k_j     dk_j += ds q     dv_j += p_j do
 *
 * Every row adds to all of dK and dV, which is why they start from zero and are complete after the batch's last row.
 */
#define HEADER_WORDS 3 /* B N d */
#include "sequential.h"

enum { MOST_ROWS = 32768 };

static void describe(struct problem *problem)
{
    const int32_t b = problem->header[0], n = problem->header[1], d = problem->header[2];
    if (b < 1 || n < 1 || n > MOST_ROWS || d < 1)
        return;
    problem->inputs = problem->outputs = 4 * (size_t)b * (size_t)n * (size_t)d;
    problem->iterations = (long long)b * n;
}

static void iterate(const struct problem *problem, long long iteration)
{
    static float p[MOST_ROWS];
    const size_t n = (size_t)problem->header[1], d = (size_t)problem->header[2], matrix = n * d;
    const size_t batch = (size_t)iteration / n, row = (size_t)iteration % n, plane = problem->outputs / 4;
    const float *q = problem->input + 4 * batch * matrix + row * d;
    const float *k = problem->input + (4 * batch + 1) * matrix, *v = k + matrix, *dout = v + matrix + row * d;
    float *o = problem->output + batch * matrix + row * d, *dq = o + plane;
    float *dk = problem->output + 2 * plane + batch * matrix, *dv = dk + plane;
    const float scale = 1.0f / sqrtf((float)d);

    float most = -INFINITY, sum = 0.0f, total = 0.0f;
    for (size_t j = 0; j < n; j++) {
        float s = 0.0f;
        for (size_t x = 0; x < d; x++)
            s += q[x] * k[j * d + x];
        p[j] = s * scale;
        most = p[j] > most ? p[j] : most;
    }
    for (size_t j = 0; j < n; j++)
        sum += p[j] = expf(p[j] - most);
    for (size_t j = 0; j < n; j++) {
        p[j] /= sum;
        for (size_t x = 0; x < d; x++)
            o[x] += p[j] * v[j * d + x];
    }
    for (size_t x = 0; x < d; x++)
        total += dout[x] * o[x];
    for (size_t j = 0; j < n; j++) {
        float dp = 0.0f;
        for (size_t x = 0; x < d; x++)
            dp += dout[x] * v[j * d + x];
        const float ds = p[j] * (dp - total) * scale;
        for (size_t x = 0; x < d; x++) {
            dq[x] += ds * k[j * d + x];
            dk[j * d + x] += ds * q[x];
            dv[j * d + x] += p[j] * dout[x];
        }
    }
}
