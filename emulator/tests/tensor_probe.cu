// What bits do matrix instructions give? Runs each on many fragments, random and adversarial, and prints a line for each form
// and kind of numbers, with a hash of all results. `tensor_probe FILE` also writes fragments and results to FILE, in the order
// of the lines: for each fragment 128 words of A, 128 of B, 256 of C, 32 of metadata and 256 of D. Nothing here says what is
// right: the emulator's bits are compared with a GPU's (tests/gpu/test_tensor_bits_on_a_gpu.py). Built with
// -DPROBE_ARCHITECTURE=80, 89 or 90.
#include "conformance/instruction.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

constexpr int kFragments = 100; // of each kind

struct Noise {
    uint64_t state = 1;
    unsigned operator()() {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (unsigned)(state >> 33) ^ (unsigned)(state >> 40) << 24;
    }
};
enum Kind { ANY_BITS, LIKE_ONE, NEAR_ZERO, MOSTLY_ZERO, ANY_EXPONENT, NOW_AND_THEN_SPECIAL, TINY_ON_ZERO, FEW_BITS, KINDS };
static const char *const kKinds[] = {"any_bits", "like_one", "near_zero", "mostly_zero", "any_exponent", "now_and_then_special", "tiny_on_zero", "few_bits"};
struct Format { unsigned bits, exponent, fraction; }; // exponent 0: an integer, all bits are random
constexpr Format F16{16, 5, 10}, BF16{16, 8, 7}, TF32{32, 8, 23}, F32{32, 8, 23}, F64{64, 11, 52}, E4M3{8, 4, 3}, E5M2{8, 5, 2}, INTEGER{32, 0, 0};

static uint64_t number(Noise &noise, Format f, int kind, bool accumulator) {
    const uint64_t random = (uint64_t)noise() << 32 | noise();
    if (!f.exponent) return random & 0xffffffff;
    const uint64_t top = (1u << f.exponent) - 1, bias = top / 2, sign = (uint64_t)(noise() & 1) << (f.exponent + f.fraction);
    const uint64_t near = bias - 6 + noise() % 12 % top, fraction = random & ((1ull << f.fraction) - 1);
    auto make = [&](uint64_t e, uint64_t fr) { return sign | e << f.fraction | fr; };
    switch (kind) {
    case ANY_BITS: return make(noise() % (top + 1), fraction);
    case LIKE_ONE: return make(near, fraction);
    case NEAR_ZERO: return make(noise() % 4, fraction);
    case MOSTLY_ZERO: return noise() % 3 ? sign : make(near, fraction);
    case ANY_EXPONENT: return make(noise() % top, fraction);
    case NOW_AND_THEN_SPECIAL: return make(noise() % 40 ? near : top, noise() % 3 ? fraction : 0);
    case TINY_ON_ZERO: return accumulator ? sign : make(noise() % (bias / 2 + 1), fraction);
    default: return make((bias > 14 ? bias - 14 : 0) + noise() % (top < 28 ? top : 28), noise() % 2 ? 0 : 1ull << noise() % f.fraction); // sums whose last places show
    }
}
static void fill(Noise &noise, unsigned *words, int count, Format f, int kind, bool accumulator) {
    for (int i = 0; i < count; i++) {
        words[i] = 0;
        if (f.bits == 64) {
            const uint64_t v = number(noise, f, kind, accumulator);
            memcpy(words + i++, &v, 8);
        } else
            for (unsigned at = 0; at < 32; at += f.bits) words[i] |= (unsigned)number(noise, f, kind, accumulator) << at;
    }
}

struct Form { const char *name; Instruction run; Format a, c; };

#define MMA(name, text) INSTRUCTION(name, "mma.sync.aligned." text ";")
#define D4 " {%%d0,%%d1,%%d2,%%d3}, "
#define C4 ", {%%c0,%%c1,%%c2,%%c3}"
#define SMALL "{%%a0,%%a1}, {%%b0}"
#define LARGE "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}"
MMA(f16_k8, "m16n8k8.row.col.f32.f16.f16.f32" D4 SMALL C4)
MMA(f16_k16, "m16n8k16.row.col.f32.f16.f16.f32" D4 LARGE C4)
MMA(f16_k8_f16, "m16n8k8.row.col.f16.f16.f16.f16 {%%d0,%%d1}, " SMALL ", {%%c0,%%c1}")
MMA(f16_k16_f16, "m16n8k16.row.col.f16.f16.f16.f16 {%%d0,%%d1}, " LARGE ", {%%c0,%%c1}")
MMA(bf16_k8, "m16n8k8.row.col.f32.bf16.bf16.f32" D4 SMALL C4)
MMA(bf16_k16, "m16n8k16.row.col.f32.bf16.bf16.f32" D4 LARGE C4)
MMA(tf32_k4, "m16n8k4.row.col.f32.tf32.tf32.f32" D4 SMALL C4)
MMA(tf32_k8, "m16n8k8.row.col.f32.tf32.tf32.f32" D4 LARGE C4)
MMA(quads, "m8n8k4.row.col.f32.f16.f16.f32 {%%d0,%%d1,%%d2,%%d3,%%d4,%%d5,%%d6,%%d7}, {%%a0,%%a1}, {%%b0,%%b1}, {%%c0,%%c1,%%c2,%%c3,%%c4,%%c5,%%c6,%%c7}")
MMA(quads_f16, "m8n8k4.row.col.f16.f16.f16.f16" D4 "{%%a0,%%a1}, {%%b0,%%b1}" C4)
MMA(s8_k32, "m16n8k32.row.col.satfinite.s32.s8.s8.s32" D4 LARGE C4)
MMA(u8_k16, "m16n8k16.row.col.s32.u8.u8.s32" D4 SMALL C4)
MMA(s4_k64, "m16n8k64.row.col.s32.s4.u4.s32" D4 LARGE C4)
MMA(b1_k256, "m16n8k256.row.col.s32.b1.b1.s32.and.popc" D4 LARGE C4)
#define SPARSE(name, text) INSTRUCTION(name, "mma.sp.sync.aligned." text ", %%e0, 0x0;")
SPARSE(sparse_f16_k16, "m16n8k16.row.col.f32.f16.f16.f32" D4 "{%%a0,%%a1}, {%%b0,%%b1}" C4)
SPARSE(sparse_f16_k32, "m16n8k32.row.col.f32.f16.f16.f32" D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1,%%b2,%%b3}" C4)
SPARSE(sparse_bf16_k32, "m16n8k32.row.col.f32.bf16.bf16.f32" D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1,%%b2,%%b3}" C4)
SPARSE(sparse_tf32_k16, "m16n8k16.row.col.f32.tf32.tf32.f32" D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1,%%b2,%%b3}" C4)
SPARSE(sparse_s8_k64, "m16n8k64.row.col.s32.s8.s8.s32" D4 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1,%%b2,%%b3}" C4)
#if PROBE_ARCHITECTURE >= 89
MMA(e4m3_k32, "m16n8k32.row.col.f32.e4m3.e4m3.f32" D4 LARGE C4)
MMA(e5m2_k32, "m16n8k32.row.col.f32.e5m2.e5m2.f32" D4 LARGE C4)
#endif
__global__ void f64_k4(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *d, const unsigned *) {
    const int l = threadIdx.x, n = blockIdx.x;
    const double *x = (const double *)(a + 128 * n), *y = (const double *)(b + 128 * n), *z = (const double *)(c + 256 * n);
    double *to = (double *)(d + 256 * n);
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
                 : "=d"(to[l]), "=d"(to[32 + l]) : "d"(x[l]), "d"(y[l]), "d"(z[l]), "d"(z[32 + l]));
}

static const Form kForms[] = {
    {"f16_k8", f16_k8, F16, F32}, {"f16_k16", f16_k16, F16, F32}, {"f16_k8_f16", f16_k8_f16, F16, F16}, {"f16_k16_f16", f16_k16_f16, F16, F16},
    {"bf16_k8", bf16_k8, BF16, F32}, {"bf16_k16", bf16_k16, BF16, F32}, {"tf32_k4", tf32_k4, TF32, F32}, {"tf32_k8", tf32_k8, TF32, F32},
    {"m8n8k4", quads, F16, F32}, {"m8n8k4_f16", quads_f16, F16, F16}, {"f64", f64_k4, F64, F64},
    {"s8_k32", s8_k32, INTEGER, INTEGER}, {"u8_k16", u8_k16, INTEGER, INTEGER}, {"s4_k64", s4_k64, INTEGER, INTEGER}, {"b1_k256", b1_k256, INTEGER, INTEGER},
    {"sparse_f16_k16", sparse_f16_k16, F16, F32}, {"sparse_f16_k32", sparse_f16_k32, F16, F32}, {"sparse_bf16_k32", sparse_bf16_k32, BF16, F32},
    {"sparse_tf32_k16", sparse_tf32_k16, TF32, F32}, {"sparse_s8_k64", sparse_s8_k64, INTEGER, INTEGER},
#if PROBE_ARCHITECTURE >= 89
    {"e4m3_k32", e4m3_k32, E4M3, F32}, {"e5m2_k32", e5m2_k32, E5M2, F32},
#endif
};

int main(int argc, char **argv) {
    const size_t sizes[5] = {128 * kFragments, 128 * kFragments, 256 * kFragments, 32 * kFragments, 256 * kFragments};
    unsigned *device[5]; // A, B, C, metadata, D
    std::vector<unsigned> host[5];
    for (int i = 0; i < 5; i++) host[i].resize(sizes[i]), cudaMalloc(&device[i], sizes[i] * 4);
    FILE *file = argc > 1 ? fopen(argv[1], "wb") : nullptr;
    for (const Form &form : kForms)
        for (int kind = 0; kind < (form.a.exponent ? KINDS : 1); kind++) {
            Noise noise;
            fill(noise, host[0].data(), (int)sizes[0], form.a, kind, false);
            fill(noise, host[1].data(), (int)sizes[1], form.a, kind, false);
            fill(noise, host[2].data(), (int)sizes[2], form.c, kind, true);
            static const unsigned pairs[6] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
            for (auto &word : host[3]) {
                word = 0;
                for (int at = 0; at < 32; at += 4) word |= (form.a.bits == 32 && form.a.exponent ? pairs[noise() % 2 * 5] : pairs[noise() % 6]) << at;
            }
            for (int i = 0; i < 4; i++) cudaMemcpy(device[i], host[i].data(), sizes[i] * 4, cudaMemcpyHostToDevice);
            cudaMemset(device[4], 0, sizes[4] * 4);
            form.run<<<kFragments, 32>>>(device[0], device[1], device[2], device[4], device[3]);
            cudaMemcpy(host[4].data(), device[4], sizes[4] * 4, cudaMemcpyDeviceToHost);
            if (cudaGetLastError() != cudaSuccess) return printf("%s fails\n", form.name), 1;
            uint64_t hash = 0xcbf29ce484222325ull;
            for (unsigned word : host[4]) hash = (hash ^ word) * 0x100000001b3ull;
            printf("%s %s %016llx\n", form.name, kKinds[kind], (unsigned long long)hash);
            for (int n = 0; file && n < kFragments; n++)
                for (int i = 0; i < 5; i++) fwrite(&host[i][sizes[i] / kFragments * n], 4, sizes[i] / kFragments, file);
        }
    return file && fclose(file) ? 2 : 0;
}
