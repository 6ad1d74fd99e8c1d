/* The sequential baseline of half: attention by heads, in float32 inside. sequential.h and half.h do the rest.
 *
 * A row's scores are kept, exponentiated, used. An iteration is some rows of a query head (half.h).
 */
#include "half.h"

static void describe(struct problem *problem)
{
    if (!legal(problem, 4))
        return;
    const struct shape s = shape_of(problem);
    const enum type types[] = {F16, BF16, E4M3, E5M2};
    problem->input_type = types[problem->header[6]];
    problem->output_type = problem->input_type == BF16 ? BF16 : F16;
    problem->outputs = query_values(&s);
    problem->inputs = problem->outputs + 2 * key_values(&s);
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
    for (size_t i = 0, row = part; row < s.queries; row = row_of(++i, part, count)) {
        long long first, end;
        float *out = problem->output + o.first + row * o.stride;
        keys_seen(&s, row, &first, &end);
        softmax(p, &s, problem->input + q.first + row * q.stride, problem->input + k.first, k.stride, first, end);
        for (long long j = first; j < end; j++)
            for (size_t x = 0; x < s.d; x++)
                out[x] += p[j] * problem->input[v.first + (size_t)j * v.stride + x];
    }
}
