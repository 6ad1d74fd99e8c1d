/* The sequential baseline of hw4: tiled flash attention, 32 rows of Q an iteration. sequential.h does the rest.
 *
 * For each batch, for each tile of 32 query rows, for each tile of 32 keys: compute the 32 x 32 scores, then bring the
 * rows' running maximum m, running sum l and output O up to date. With s the scores of a row in the new tile and v the
 * values,
 *
 *     m' = max(m, max s)
 *     l' = exp(m - m') l + sum exp(s - m')
 *     O' = exp(m - m') O + sum exp(s - m') v          and, after the last tile, O = O' / l'
 *
 * All tiles of query rows cost the same, since each visits all N keys. The speedup that is measured against this program
 * is "GPU against straightforward C", not "GPU against the best this CPU can do".
 */
#define HEADER_WORDS 3 /* B N d */
#include "sequential.h"

enum { TILE = 32, MAX_DIM = 64 };

/* s[i][j] = scale * (q row i . k row j), for 32 rows of q and 32 of k, each of d floats. */
static void score_tile(float s[TILE][TILE], const float *q, const float *k, int d, float scale)
{
    for (int i = 0; i < TILE; i++) {
        for (int j = 0; j < TILE; j++) {
            float sum = 0.0f;
            for (int x = 0; x < d; x++)
                sum += q[i * d + x] * k[j * d + x];
            s[i][j] = sum * scale;
        }
    }
}

/* Scores to probabilities relative to the new running maximum; brings m, l and o up to date for the change of it. */
static void softmax_tile(float s[TILE][TILE], float m[TILE], float l[TILE], float *o, int d)
{
    for (int i = 0; i < TILE; i++) {
        float new_max = m[i];
        for (int j = 0; j < TILE; j++)
            new_max = s[i][j] > new_max ? s[i][j] : new_max;

        const float rescale = expf(m[i] - new_max); /* 0 at the first tile, where m is -infinity */
        float sum = 0.0f;
        for (int j = 0; j < TILE; j++) {
            s[i][j] = expf(s[i][j] - new_max);
            sum += s[i][j];
        }
        m[i] = new_max;
        l[i] = l[i] * rescale + sum;
        for (int x = 0; x < d; x++)
            o[i * d + x] *= rescale;
    }
}

/* o[i][x] += p row i . v column x, for 32 rows and d columns. */
static void output_tile(float *o, float p[TILE][TILE], const float *v, int d)
{
    for (int i = 0; i < TILE; i++) {
        for (int x = 0; x < d; x++) {
            float sum = 0.0f;
            for (int j = 0; j < TILE; j++)
                sum += p[i][j] * v[j * d + x];
            o[i * d + x] += sum;
        }
    }
}

/* One iteration: the output o of 32 query rows q against all n keys k and values v of their batch. */
static void attention_rows(float *o, const float *q, const float *k, const float *v, int n, int d)
{
    float s[TILE][TILE], m[TILE], l[TILE];
    const float scale = 1.0f / sqrtf((float)d);

    for (int i = 0; i < TILE; i++) {
        m[i] = -INFINITY;
        l[i] = 0.0f;
        for (int x = 0; x < d; x++)
            o[i * d + x] = 0.0f;
    }
    for (int j = 0; j < n; j += TILE) {
        score_tile(s, q, k + (size_t)j * (size_t)d, d, scale);
        softmax_tile(s, m, l, o, d);
        output_tile(o, s, v + (size_t)j * (size_t)d, d);
    }
    for (int i = 0; i < TILE; i++)
        for (int x = 0; x < d; x++)
            o[i * d + x] /= l[i];
}

static void describe(struct problem *problem)
{
    const int32_t b = problem->header[0], n = problem->header[1], d = problem->header[2];
    if (b < 1 || n < TILE || n > 32768 || n % TILE != 0 || d < 1 || d > MAX_DIM)
        return;
    problem->outputs = (size_t)b * (size_t)n * (size_t)d;
    problem->inputs = 3 * problem->outputs;
    problem->iterations = (long long)b * (n / TILE);
}

static void iterate(const struct problem *problem, long long iteration)
{
    const int n = problem->header[1], d = problem->header[2], tiles = n / TILE;
    const size_t batch = (size_t)(iteration / tiles), matrix = (size_t)n * (size_t)d;
    const size_t first = (size_t)(iteration % tiles) * TILE * (size_t)d;
    const float *const q = problem->input + 3 * batch * matrix;
    attention_rows(problem->output + batch * matrix + first, q + first, q + matrix, q + 2 * matrix, n, d);
}
