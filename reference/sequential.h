/* All of a sequential baseline but its algorithm: files, the clock, the budget. Speedups are relative to these programs.
 *
 * Theory of operation
 *
 *   usage: seq INPUT OUTPUT [TIMES [BUDGET_S]]
 *
 *   An assignment's C file defines HEADER_WORDS, includes this header, and defines two functions:
 *
 *       describe(problem)     from problem->header, how many floats go in and out, and how many iterations there are
 *       iterate(problem, i)   iteration i: compute some part of problem->output from problem->input
 *
 *   Files hold float32, or what describe() says: problem->type of input and output. The program itself always sees
 *   floats; they are converted before the clock starts and after it stops, rounded to nearest even. Files with other
 *   tensors are BYTES: inputs and outputs are then counted in bytes, and the program finds its tensors in them itself,
 *   with tensor_at() and output_at().
 *
 *   TIMES gets one line about the iterations alone (CLOCK_PROCESS_CPUTIME_ID),
 *
 *       seconds iterations total_iterations
 *
 *   Without a budget, it is about all iterations, each done once. With BUDGET_S > 0 the program only measures, and writes
 *   no OUTPUT: it does iterations, after the last one the first again, until so much time has passed. The line is then
 *   about the fastest slice of at least SLICE_S, since whatever disturbs a program only makes it slower, and often for a
 *   few milliseconds. Iterations must cost the same, in whatever order and number: the time of all is
 *   seconds / iterations * total_iterations.
 *
 *   The output is zero before the first iteration. An iteration should take at least some microseconds, since the clock
 *   is read after each.
 *
 *   Everything is in memory at once. OUTPUT is complete or absent: it is written under the name OUTPUT.part, and
 *   renamed when everything was computed.
 *
 *   The C files are what a student would write for a CPU: float32, portable C11, one thread, loops a compiler may
 *   vectorise where the language lets it, nothing vectorised by hand.
 *
 * Build: cc -O3 -std=c11 -I.. seq_NAME.c -o seq -lm
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

static const double SLICE_S = 0.002;

enum type { F32, F16, BF16, E4M3, E5M2, BYTES };

struct problem {
    int32_t header[HEADER_WORDS];
    enum type input_type, output_type;
    const float *input;      /* what follows the header */
    float *output;
    size_t inputs, outputs;  /* floats, or bytes */
    long long iterations;    /* at least 1; left 0 by describe() when the header is not legal */
};

static void describe(struct problem *problem);
static void iterate(const struct problem *problem, long long iteration);

/* Header word `index` as the float32 that its bits are. */
static inline float header_float(const struct problem *problem, int index)
{
    float value;
    memcpy(&value, &problem->header[index], sizeof value);
    return value;
}

/* What lies `bytes` bytes behind the beginning of input or output. */
static inline const void *tensor_at(const struct problem *problem, size_t bytes)
{
    return (const unsigned char *)problem->input + bytes;
}

static inline void *output_at(const struct problem *problem, size_t bytes)
{
    return (unsigned char *)problem->output + bytes;
}

static inline float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static size_t type_bytes(enum type type)
{
    return type == F32 ? 4 : type == F16 || type == BF16 ? 2 : 1;
}

/* A float of `exponent_bits` and `mantissa_bits` as float32; its infinities and NaNs do not occur in inputs. */
static float small_float(uint32_t bits, int exponent_bits, int mantissa_bits)
{
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1), sign = bits >> (exponent_bits + mantissa_bits);
    const int exponent = (int)(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const float size = exponent ? ldexpf((float)(mantissa | 1u << mantissa_bits), exponent - bias - mantissa_bits)
                                : ldexpf((float)mantissa, 1 - bias - mantissa_bits);
    return sign ? -size : size;
}

static float decoded(const unsigned char *from, enum type type)
{
    const uint32_t byte = from[0], two = type_bytes(type) == 2 ? byte | (uint32_t)from[1] << 8 : 0;
    switch (type) {
    case F16: return small_float(two, 5, 10);
    case BF16: return bits_float(two << 16);
    case E4M3: return small_float(byte, 4, 3);
    case E5M2: return small_float(byte, 5, 2);
    default: {
        float value;
        memcpy(&value, from, sizeof value);
        return value;
    }
    }
}

/* To nearest, ties to even. */
static uint16_t encoded(float value, enum type type)
{
    const uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000;
    if (type == BF16)
        return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    const float size = fabsf(value);
    if (!(size < 65520.0f))
        return (uint16_t)(sign | (size != size ? 0x7e00 : 0x7c00));
    if (size < 6.103515625e-05f) /* a subnormal: a multiple of 2^-24 */
        return (uint16_t)(sign | (uint32_t)lrintf(size * 16777216.0f));
    const uint32_t rounded = float_bits(size) + 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((rounded >> 13) - (112u << 10)));
}

static _Noreturn void fail(const char *path, const char *what)
{
    fprintf(stderr, "seq: %s: %s\n", path, what);
    exit(1);
}

static double now_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_output(const char *path, const struct problem *problem)
{
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        fail(path, "name too long");
    FILE *file = fopen(part, "wb");
    if (!file)
        fail(part, strerror(errno));
    size_t written = 0;
    if (problem->output_type == F32 || problem->output_type == BYTES)
        written = fwrite(problem->output, type_bytes(problem->output_type), problem->outputs, file);
    else
        for (size_t i = 0; i < problem->outputs; i++) {
            const uint16_t half = encoded(problem->output[i], problem->output_type);
            written += fwrite(&half, sizeof half, 1, file);
        }
    if (fclose(file) != 0 || written != problem->outputs || rename(part, path) != 0) {
        remove(part);
        fail(part, "cannot be written (disk full?)");
    }
}

static void write_times(const char *path, double seconds, long long iterations, long long total)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path, strerror(errno));
    const int printed = fprintf(file, "%.9f %lld %lld\n", seconds, iterations, total);
    if (fclose(file) != 0 || printed < 0)
        fail(path, "cannot be written (disk full?)");
}

struct slice {
    double seconds;
    long long iterations;
};

static struct slice fastest_slice(const struct problem *problem, double budget_s)
{
    const double start_s = now_s(CLOCK_MONOTONIC);
    double now = start_s, opened_s = start_s, opened_cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
    struct slice fastest = {INFINITY, 1}, slice = {0.0, 0};
    for (long long next = 0; now - start_s < budget_s || fastest.seconds == INFINITY; next = (next + 1) % problem->iterations) {
        iterate(problem, next);
        slice.iterations++;
        now = now_s(CLOCK_MONOTONIC);
        if (now - opened_s < SLICE_S)
            continue;
        const double cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
        slice.seconds = cpu_s - opened_cpu_s;
        if (slice.seconds / (double)slice.iterations < fastest.seconds / (double)fastest.iterations)
            fastest = slice;
        slice.iterations = 0;
        opened_s = now;
        opened_cpu_s = cpu_s;
    }
    return fastest;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s INPUT OUTPUT [TIMES [BUDGET_S]]\n", argv[0]);
        return 2;
    }
    char *end = NULL;
    const double budget_s = argc > 4 ? strtod(argv[4], &end) : 0.0;
    if (argc > 4 && (*end != '\0' || end == argv[4] || !(budget_s >= 0.0))) {
        fprintf(stderr, "seq: BUDGET_S is \"%s\"; expected seconds, or 0 for no limit\n", argv[4]);
        return 2;
    }

    FILE *in = fopen(argv[1], "rb");
    if (!in)
        fail(argv[1], strerror(errno));
    struct problem problem = {0};
    if (fread(problem.header, sizeof problem.header, 1, in) != 1)
        fail(argv[1], "too short for its header");
    describe(&problem);
    if (problem.iterations < 1)
        fail(argv[1], "its header is not legal");
    const size_t output_bytes = problem.outputs * (problem.output_type == BYTES ? 1 : sizeof(float));
    float *const input = malloc(problem.inputs * (problem.input_type == BYTES ? 1 : sizeof(float)));
    problem.output = calloc(output_bytes, 1);
    if (!input || !problem.output)
        fail(argv[1], "not enough memory");
    const size_t size = type_bytes(problem.input_type);
    const int as_it_is = problem.input_type == F32 || problem.input_type == BYTES;
    unsigned char *const stored = as_it_is ? (unsigned char *)input : malloc(problem.inputs * size);
    if (!stored)
        fail(argv[1], "not enough memory");
    if (fread(stored, size, problem.inputs, in) != problem.inputs)
        fail(argv[1], "shorter than its header says");
    if (stored != (unsigned char *)input) {
        for (size_t i = 0; i < problem.inputs; i++)
            input[i] = decoded(stored + i * size, problem.input_type);
        free(stored);
    }
    fclose(in);
    problem.input = input;
    memset(problem.output, 0, output_bytes); /* its pages are there before the clock starts */

    if (budget_s > 0.0) {
        const struct slice fastest = fastest_slice(&problem, budget_s);
        write_times(argv[3], fastest.seconds, fastest.iterations, problem.iterations);
    } else {
        const double start_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
        for (long long i = 0; i < problem.iterations; i++)
            iterate(&problem, i);
        const double seconds = now_s(CLOCK_PROCESS_CPUTIME_ID) - start_s;
        write_output(argv[2], &problem);
        if (argc > 3)
            write_times(argv[3], seconds, problem.iterations, problem.iterations);
    }
    free(problem.output);
    free(input);
    return 0;
}
