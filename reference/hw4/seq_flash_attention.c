/* The sequential baseline of hw4: tiled flash attention on one CPU thread. Speedups are relative to this program.
 *
 * Theory of operation
 *
 *   usage: seq INPUT OUTPUT [TIMES [BUDGET_S]]
 *
 *   For each batch, for each tile of 32 query rows, for each tile of 32 keys: compute the 32 x 32 scores, then bring
 *   the rows' running maximum m, running sum l and output O up to date. With s the scores of a row in the new tile
 *   and v the values,
 *
 *       m' = max(m, max s)
 *       l' = exp(m - m') l + sum exp(s - m')
 *       O' = exp(m - m') O + sum exp(s - m') v          and, after the last tile, O = O' / l'
 *
 *   It is the program a student would write for a CPU: float32, portable C11, one thread, loops a compiler may
 *   vectorise where the language lets it, nothing vectorised by hand. The speedup that is measured against it is
 *   therefore "GPU against straightforward C", not "GPU against the best this CPU can do".
 *
 *   Sampling. A large testcase takes minutes, and all tiles of query rows cost the same: each visits all N keys.
 *   With BUDGET_S > 0 the program stops after the first tile of rows at which that much computing time is spent, and
 *   whoever reads TIMES scales by total / done. TIMES gets one line:
 *
 *       compute_seconds done_iterations total_iterations
 *
 *   where an iteration is a tile of 32 query rows of one batch, and compute_seconds (CLOCK_PROCESS_CPUTIME_ID) counts
 *   computing alone: neither reading nor writing files. BUDGET_S = 0, or none, means no limit.
 *
 *   Memory is one batch. OUTPUT is complete or absent: it is written under the name OUTPUT.part, and renamed when
 *   everything was computed, removed when not.
 *
 * Build: cc -O3 -std=c11 seq_flash_attention.c -o seq -lm
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------------------------------- computing */

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

/* ----------------------------------------------------------------------------------- files and the clock */

static char part[PATH_MAX]; /* the unfinished OUTPUT, while there is one */

static _Noreturn void fail(const char *path, const char *what)
{
    if (part[0])
        remove(part);
    fprintf(stderr, "seq: %s: %s\n", path, what);
    exit(1);
}

static double now_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_times(const char *path, double compute_s, long long done, long long total)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path, strerror(errno));
    const int printed = fprintf(file, "%.9f %lld %lld\n", compute_s, done, total);
    if (fclose(file) != 0 || printed < 0)
        fail(path, "cannot be written (disk full?)");
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s INPUT OUTPUT [TIMES [BUDGET_S]]\n", argv[0]);
        return 2;
    }
    const char *times = argc > 3 ? argv[3] : NULL;
    char *end = NULL;
    const double budget_s = argc > 4 ? strtod(argv[4], &end) : 0.0;
    if (argc > 4 && (*end != '\0' || end == argv[4] || !(budget_s >= 0.0))) {
        fprintf(stderr, "seq: BUDGET_S is \"%s\"; expected seconds, or 0 for no limit\n", argv[4]);
        return 2;
    }

    FILE *in = fopen(argv[1], "rb");
    if (!in)
        fail(argv[1], strerror(errno));
    int32_t header[3];
    if (fread(header, sizeof header, 1, in) != 1)
        fail(argv[1], "too short for the header B N d (12 bytes)");
    const int batches = header[0], n = header[1], d = header[2];
    if (batches < 1 || n < TILE || n > 32768 || n % TILE != 0 || d < 1 || d > MAX_DIM) {
        fprintf(stderr, "seq: %s: B=%d N=%d d=%d; expected B >= 1, N a multiple of 32 up to 32768, d up to 64\n",
                argv[1], batches, n, d);
        return 1;
    }

    if (snprintf(part, sizeof part, "%s.part", argv[2]) >= (int)sizeof part)
        fail(argv[2], "name too long");
    FILE *out = fopen(part, "wb");
    if (!out)
        fail(part, strerror(errno));

    const size_t matrix = (size_t)n * (size_t)d;
    float *qkv = malloc(3 * matrix * sizeof(float));
    float *o = malloc(matrix * sizeof(float));
    if (!qkv || !o)
        fail(argv[1], "not enough memory for one batch");

    const long long tiles = n / TILE, total = batches * tiles;
    long long done = 0;
    double compute_s = 0.0, spent_s = 0.0;
    int spent = 0;
    for (int batch = 0; batch < batches && !spent; batch++) {
        if (fread(qkv, sizeof(float), 3 * matrix, in) != 3 * matrix)
            fail(argv[1], "shorter than B, N and d say");
        const double start_s = now_s(CLOCK_MONOTONIC), start_cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
        double elapsed_s = 0.0;
        for (long long tile = 0; tile < tiles && !spent; tile++) {
            const size_t first = (size_t)tile * TILE * (size_t)d;
            attention_rows(o + first, qkv + first, qkv + matrix, qkv + 2 * matrix, n, d);
            elapsed_s = now_s(CLOCK_MONOTONIC) - start_s;
            done++;
            spent = budget_s > 0.0 && spent_s + elapsed_s >= budget_s;
        }
        spent_s += elapsed_s;
        compute_s += now_s(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_s;
        if ((!spent || done == total) && fwrite(o, sizeof(float), matrix, out) != matrix)
            fail(part, "cannot be written (disk full?)");
    }

    if (fclose(out) != 0)
        fail(part, "cannot be written (disk full?)");
    if (done == total ? rename(part, argv[2]) : remove(part))
        fail(part, strerror(errno));
    part[0] = '\0';
    if (times)
        write_times(times, compute_s, done, total);
    free(o);
    free(qkv);
    fclose(in);
    return 0;
}
