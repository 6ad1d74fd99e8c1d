// What the wrong programs of this folder share: rows.cu, with a macro at each place where one goes wrong.
//
//     FORWARD_SCALE       what scores are multiplied with in the forward pass     scale
//     D_OF(dot)           what is subtracted from dP                              dot
//     DQ_SCALE, DK_SCALE  the factors of dQ and dK                                scale
//     DV_BEFORE(dv, i)    what dV holds when row i comes                          dv
#pragma once

#ifndef FORWARD_SCALE
#define FORWARD_SCALE scale
#endif
#ifndef D_OF
#define D_OF(dot) (dot)
#endif
#ifndef DQ_SCALE
#define DQ_SCALE scale
#endif
#ifndef DK_SCALE
#define DK_SCALE scale
#endif
#ifndef DV_BEFORE
#define DV_BEFORE(dv, i) (dv)
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------- kernel

#define CUDA_CHECK(call)                                                                                       \
    do {                                                                                                       \
        const cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                           \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

// What every kernel works on, all in device memory. `input` holds Q, K, V, dO (each n × d) of batch 0, of batch 1, ...;
// o, dq, dk, dv each hold all batches one after the other. lse and dot are one number a row, for the backward pass:
// the logarithm of the sum of the row's exponentials, and D = dO . O.
struct Problem {
    const float* input;
    float *o, *dq, *dk, *dv, *lse, *dot;
    int batches, n, d;
};

constexpr int kThreads = 64;
constexpr int kMostColumns = 64;

// Grid, all three kernels: batches * n / kThreads blocks of kThreads threads.

// O and log-sum-exp of one row a thread, and D = dO . O, which the backward pass wants.
__global__ void attention_forward(Problem a, float scale) {
    const int d = a.d;
    const size_t row = size_t(blockIdx.x) * kThreads + threadIdx.x, batch = row / a.n, matrix = size_t(a.n) * d;
    const float* const k = a.input + (4 * batch + 1) * matrix;
    const float* const v = k + matrix;
    const float* const q = k - matrix + row % a.n * d;
    const float* const grad = v + matrix + row % a.n * d;
    float m = -INFINITY, l = 0.0f, o[kMostColumns];
    for (int x = 0; x < d; ++x) o[x] = 0.0f;
    for (int key = 0; key < a.n; ++key) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s += q[x] * k[size_t(key) * d + x];
        s *= FORWARD_SCALE;
        const float top = fmaxf(m, s), rescale = expf(m - top), p = expf(s - top);
        l = l * rescale + p;
        for (int x = 0; x < d; ++x) o[x] = o[x] * rescale + p * v[size_t(key) * d + x];
        m = top;
    }
    float dot = 0.0f;
    for (int x = 0; x < d; ++x) {
        o[x] /= l;
        a.o[row * d + x] = o[x];
        dot += grad[x] * o[x];
    }
    a.lse[row] = m + logf(l);
    a.dot[row] = dot;
}

// dQ of one row a thread: a sum over keys.
__global__ void attention_backward_rows(Problem a, float scale) {
    const int d = a.d;
    const size_t row = size_t(blockIdx.x) * kThreads + threadIdx.x, batch = row / a.n, matrix = size_t(a.n) * d;
    const float* const k = a.input + (4 * batch + 1) * matrix;
    const float* const v = k + matrix;
    const float* const q = k - matrix + row % a.n * d;
    const float* const grad = v + matrix + row % a.n * d;
    const float lse = a.lse[row], dot = a.dot[row];
    float dq[kMostColumns];
    for (int x = 0; x < d; ++x) dq[x] = 0.0f;
    for (int key = 0; key < a.n; ++key) {
        float s = 0.0f, dp = 0.0f;
        for (int x = 0; x < d; ++x) {
            s += q[x] * k[size_t(key) * d + x];
            dp += grad[x] * v[size_t(key) * d + x];
        }
        const float ds = expf(s * scale - lse) * (dp - D_OF(dot)) * DQ_SCALE;
        for (int x = 0; x < d; ++x) dq[x] += ds * k[size_t(key) * d + x];
    }
    for (int x = 0; x < d; ++x) a.dq[row * d + x] = dq[x];
}

// dK and dV of one key a thread: sums over rows.
__global__ void attention_backward_keys(Problem a, float scale) {
    const int d = a.d;
    const size_t key = size_t(blockIdx.x) * kThreads + threadIdx.x, batch = key / a.n, matrix = size_t(a.n) * d;
    const float* const q = a.input + 4 * batch * matrix;
    const float* const grad = q + 3 * matrix;
    const float* const k = q + matrix + key % a.n * d;
    const float* const v = k + matrix;
    float dk[kMostColumns], dv[kMostColumns];
    for (int x = 0; x < d; ++x) dk[x] = dv[x] = 0.0f;
    for (int i = 0; i < a.n; ++i) {
        float s = 0.0f, dp = 0.0f;
        for (int x = 0; x < d; ++x) {
            s += q[size_t(i) * d + x] * k[x];
            dp += grad[size_t(i) * d + x] * v[x];
        }
        const float p = expf(s * scale - a.lse[batch * a.n + i]);
        const float ds = p * (dp - D_OF(a.dot[batch * a.n + i])) * DK_SCALE;
        for (int x = 0; x < d; ++x) {
            dk[x] += ds * q[size_t(i) * d + x];
            dv[x] = DV_BEFORE(dv[x], i) + p * grad[size_t(i) * d + x];
        }
    }
    for (int x = 0; x < d; ++x) {
        a.dk[key * d + x] = dk[x];
        a.dv[key * d + x] = dv[x];
    }
}

static void launch(const Problem& a) {
    const unsigned blocks = unsigned(size_t(a.batches) * a.n / kThreads);
    const float scale = 1.0f / sqrtf(float(a.d));
    attention_forward<<<blocks, kThreads>>>(a, scale);
    attention_backward_rows<<<blocks, kThreads>>>(a, scale);
    attention_backward_keys<<<blocks, kThreads>>>(a, scale);
    CUDA_CHECK(cudaGetLastError());
}

// ------------------------------------------------------------------------------------------------ host

[[noreturn]] static void fail(const char* path, const char* what) {
    std::fprintf(stderr, "%s: %s\n", path, what);
    std::exit(1);
}

static void read_exactly(FILE* file, void* to, size_t bytes, const char* path) {
    if (std::fread(to, 1, bytes, file) != bytes) fail(path, "is too short");
}

static void write_file(const char* path, const std::vector<float>& values) {
    FILE* const file = std::fopen(path, "wb");
    if (!file) fail(path, "cannot be opened for writing");
    const bool written = std::fwrite(values.data(), sizeof(float), values.size(), file) == values.size();
    if (std::fclose(file) != 0 || !written) fail(path, "cannot be written (disk full?)");
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    FILE* const in = std::fopen(argv[1], "rb");
    if (!in) fail(argv[1], "cannot be opened for reading");
    int32_t batches, n, d;
    read_exactly(in, &batches, sizeof batches, argv[1]);
    read_exactly(in, &n, sizeof n, argv[1]);
    read_exactly(in, &d, sizeof d, argv[1]);
    if (batches < 1 || n < 128 || n > 32768 || n % 128 != 0 || (d != 32 && d != 64))
        fail(argv[1], "the header's B, N or d is not legal");
    const size_t plane = size_t(batches) * n * d;    // floats in each of the eight tensors, of all batches
    std::vector<float> host(4 * plane);
    const size_t bytes = 4 * plane * sizeof(float);
    read_exactly(in, host.data(), bytes, argv[1]);
    std::fclose(in);

    float *input, *output, *lse, *dot;
    CUDA_CHECK(cudaMalloc(&input, bytes));
    CUDA_CHECK(cudaMalloc(&output, bytes));
    CUDA_CHECK(cudaMalloc(&lse, size_t(batches) * n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&dot, size_t(batches) * n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(input, host.data(), bytes, cudaMemcpyHostToDevice));
    const Problem problem = {input, output, output + plane, output + 2 * plane, output + 3 * plane,
                             lse,   dot,    batches,        n,                  d};
    launch(problem);
    CUDA_CHECK(cudaMemcpy(host.data(), output, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    CUDA_CHECK(cudaFree(lse));
    CUDA_CHECK(cudaFree(dot));
    write_file(argv[2], host);
    return 0;
}
