/* The sequential baseline of half_backward: attention and its gradient, in float32 inside. sequential.h and half.h do
 * the rest.
 *
 *   p = softmax(scale q K^T)     o = p V     D = do . o
 *   for each key j:  ds = p_j (do . v_j - D) scale     dq += ds k_j     dk_j += ds q     dv_j += p_j do
 *
 * An iteration is some rows of a query head (half.h). All rows of the heads of a group add to dK and dV of their key
 * head, which start from zero.
 */
#include "half.h"

static void describe(struct problem *problem)
{
    if (!legal(problem, 2))
        return;
    const struct shape s = shape_of(problem);
    problem->input_type = problem->output_type = problem->header[6] == 0 ? F16 : BF16;
    problem->inputs = problem->outputs = 2 * query_values(&s) + 2 * key_values(&s);
    problem->iterations = iterations(&s);
}

static void iterate(const struct problem *problem, long long iteration)
{
    static float p[MOST_ROWS];
    const struct shape s = shape_of(problem);
    const size_t count = parts(&s), part = (size_t)iteration % count, number = (size_t)iteration / count;
    const size_t batch = number / s.query_heads, head = number % s.query_heads;
    const size_t key_head = head * s.key_heads / s.query_heads;
    const struct rows q = query_rows(&s, batch, head), o = output_rows(&s, batch, head);
    const struct rows k = key_rows(&s, batch, key_head, 0), v = key_rows(&s, batch, key_head, 1);
    const float *const gradient = problem->input + query_values(&s) + 2 * key_values(&s); /* dO, after Q, K, V */
    float *const gradients = problem->output + query_values(&s);                         /* dQ, dK, dV, after O */
    for (size_t i = 0, row = part; row < s.queries; row = row_of(++i, part, count)) {
        const float *qi = problem->input + q.first + row * q.stride, *dout = gradient + o.first + row * o.stride;
        float *out = problem->output + o.first + row * o.stride, *dq = gradients + q.first + row * q.stride;
        float total = 0.0f;
        long long first, end;
        keys_seen(&s, row, &first, &end);
        softmax(p, &s, qi, problem->input + k.first, k.stride, first, end);
        for (long long j = first; j < end; j++)
            for (size_t x = 0; x < s.d; x++)
                out[x] += p[j] * problem->input[v.first + (size_t)j * v.stride + x];
        for (size_t x = 0; x < s.d; x++)
            total += dout[x] * out[x];
        for (long long j = first; j < end; j++) {
            const float *kj = problem->input + k.first + (size_t)j * k.stride;
            const float *vj = problem->input + v.first + (size_t)j * v.stride;
            float *dk = gradients + k.first + (size_t)j * k.stride, *dv = gradients + v.first + (size_t)j * v.stride;
            float dp = 0.0f;
            for (size_t x = 0; x < s.d; x++)
                dp += dout[x] * vj[x];
            const float ds = p[j] * (dp - total) * s.scale;
            for (size_t x = 0; x < s.d; x++) {
                dq[x] += ds * kj[x];
                dk[x] += ds * qi[x];
                dv[x] += p[j] * dout[x];
            }
        }
    }
}
