/* What the sequential baselines of half and half_backward share: the header, and where its tensors lie.
 *
 * The header is B Hq Hkv Nq Nk d type causal window layout scale. Layout 0 keeps Q, K and V apart, head by head; 1
 * packs them as [B, N, 3, H, d]; 2 has Q as [B, Nq, Hq, d], and K and V as [B, Nk, 2, Hkv, d].
 */
#define HEADER_WORDS 11
#include "sequential.h"

enum { MOST_ROWS = 65536, MOST_COLUMNS = 256, ROWS_AT_ONCE = 64 };
enum { SEPARATE, PACKED, PACKED_KV };

struct shape {
    size_t batches, query_heads, key_heads, queries, keys, d, layout;
    int causal, window;
    float scale;
};

/* Where a head's rows lie: row r begins at value `first` + r · `stride`. */
struct rows {
    size_t first, stride;
};

static struct shape shape_of(const struct problem *problem)
{
    const int32_t *h = problem->header;
    return (struct shape){(size_t)h[0], (size_t)h[1], (size_t)h[2], (size_t)h[3], (size_t)h[4], (size_t)h[5],
                          (size_t)h[9], h[7], h[8], header_float(problem, 10)};
}

static int legal(const struct problem *problem, int types)
{
    const int32_t *h = problem->header;
    return h[0] > 0 && h[1] > 0 && h[2] > 0 && h[1] % h[2] == 0 && h[3] > 0 && h[4] > 0 && h[4] <= MOST_ROWS &&
           h[5] > 0 && h[5] <= MOST_COLUMNS && h[6] >= 0 && h[6] < types && h[9] >= SEPARATE && h[9] <= PACKED_KV;
}

static size_t query_values(const struct shape *s) { return s->batches * s->query_heads * s->queries * s->d; }
static size_t key_values(const struct shape *s) { return s->batches * s->key_heads * s->keys * s->d; }

/* A query head's rows of O or dO, which are never packed. */
static struct rows output_rows(const struct shape *s, size_t batch, size_t head)
{
    if (s->layout == SEPARATE)
        return (struct rows){(batch * s->query_heads + head) * s->queries * s->d, s->d};
    return (struct rows){(batch * s->queries * s->query_heads + head) * s->d, s->query_heads * s->d};
}

/* A query head's rows of Q or dQ. */
static struct rows query_rows(const struct shape *s, size_t batch, size_t head)
{
    if (s->layout == PACKED)
        return (struct rows){(batch * s->queries * 3 * s->query_heads + head) * s->d, 3 * s->query_heads * s->d};
    return output_rows(s, batch, head);
}

/* A key head's rows of K or dK (slot 0), V or dV (slot 1). */
static struct rows key_rows(const struct shape *s, size_t batch, size_t head, size_t slot)
{
    const size_t heads = s->key_heads;
    if (s->layout == PACKED)
        return (struct rows){((batch * s->keys * 3 + 1 + slot) * heads + head) * s->d, 3 * heads * s->d};
    if (s->layout == PACKED_KV)
        return (struct rows){query_values(s) + ((batch * s->keys * 2 + slot) * heads + head) * s->d, 2 * heads * s->d};
    return (struct rows){query_values(s) + slot * key_values(s) + (batch * heads + head) * s->keys * s->d, s->d};
}

/* The keys that a query sees: from *first to before *end; none if *end <= *first. */
static void keys_seen(const struct shape *s, size_t query, long long *first, long long *end)
{
    const long long place = (long long)query + (long long)s->keys - (long long)s->queries;
    *first = s->window >= 0 && place > s->window ? place - s->window : 0;
    *end = s->causal && place + 1 < (long long)s->keys ? place + 1 : (long long)s->keys;
}

/* A head's rows are shared out among so many iterations. */
static size_t parts(const struct shape *s) { return s->queries < 2 * ROWS_AT_ONCE ? 1 : s->queries / ROWS_AT_ONCE; }

static long long iterations(const struct shape *s) { return (long long)(s->batches * s->query_heads * parts(s)); }

/* Row `number` of part `part`: one of every `count` rows, there and back, so that through a mask each part sees about as
 * many keys. */
static size_t row_of(size_t number, size_t part, size_t count)
{
    return number * count + (number % 2 ? count - 1 - part : part);
}

/* p = softmax(scale q K^T) over the keys that are seen. */
static void softmax(float *p, const struct shape *s, const float *q, const float *k, size_t stride, long long first,
                    long long end)
{
    float most = -INFINITY, sum = 0.0f;
    for (long long j = first; j < end; j++) {
        float dot = 0.0f;
        for (size_t x = 0; x < s->d; x++)
            dot += q[x] * k[(size_t)j * stride + x];
        p[j] = dot * s->scale;
        most = p[j] > most ? p[j] : most;
    }
    for (long long j = first; j < end; j++)
        sum += p[j] = expf(p[j] - most);
    for (long long j = first; j < end; j++)
        p[j] /= sum;
}
