// A right and slow attention on the GPU, for attacks that hide it, and a decoy that keeps the GPU busy for so long.
#pragma once
#include "hostile.h"

constexpr int kTile = 32;

template <int d> __global__ void attention(const float* input, float* output, int n) {
    extern __shared__ float unused[];
    __shared__ float k[kTile][d], v[kTile][d];
    const size_t batch = blockIdx.y, row = blockIdx.x * kTile + threadIdx.x;
    const float *q = input + batch * 3 * n * d, *keys = q + size_t(n) * d, *values = keys + size_t(n) * d;
    float mine[d], sum[d] = {}, top = -INFINITY, total = 0;
    for (int x = 0; x < d; ++x) mine[x] = q[row * d + x] * rsqrtf(float(d));
    for (int first = 0; first < n; first += kTile) {
        __syncthreads();
        for (int i = threadIdx.x; i < kTile * d; i += kTile) {
            k[i / d][i % d] = keys[size_t(first) * d + i];
            v[i / d][i % d] = values[size_t(first) * d + i];
        }
        __syncthreads();
        for (int key = 0; key < kTile; ++key) {
            float s = 0;
            for (int x = 0; x < d; ++x) s += mine[x] * k[key][x];
            const float grown = fmaxf(top, s), keep = expf(top - grown), p = expf(s - grown);
            for (int x = 0; x < d; ++x) sum[x] = sum[x] * keep + p * v[key][x];
            total = total * keep + p;
            top = grown;
        }
    }
    for (int x = 0; x < d; ++x) output[(batch * n + row) * d + x] = sum[x] / total;
    if (n < 0) output[0] = unused[0];
}

// An input on the GPU, and room for its output.
struct OnDevice {
    Shape shape;
    float *input, *output;

    explicit OnDevice(const char* path) : shape(shape_of(path)) {
        std::vector<float> values(3 * shape.count());
        FILE* const file = fopen(path, "rb");
        fseek(file, 12, SEEK_SET);
        if (fread(values.data(), 4, values.size(), file) != values.size()) exit(1);
        fclose(file);
        cudaMalloc(&input, values.size() * 4);
        cudaMalloc(&output, shape.count() * 4);
        cudaMemcpy(input, values.data(), values.size() * 4, cudaMemcpyHostToDevice);
    }
    void compute(int batches, size_t unused_bytes = 0, cudaStream_t stream = 0) const {
        const auto kernel = shape.d == 32 ? attention<32> : attention<64>;
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 80 << 10);
        kernel<<<dim3(shape.n / kTile, batches), kTile, unused_bytes, stream>>>(input, output, shape.n);
    }
    void write(const char* path) const {
        std::vector<float> result(shape.count());
        if (cudaDeviceSynchronize() != cudaSuccess) exit(1);
        cudaMemcpy(result.data(), output, result.size() * 4, cudaMemcpyDeviceToHost);
        write_values(path, result);
    }
};

// Longer than the least time that a GPU of today needs for t23, and half as long as `attention` (11.9 ms on an H200).
constexpr long long kDecoyNs = 6000000;

__global__ void decoy(float* nowhere, long long ns) {
    long long began, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - began < ns);
    if (ns < 0) *nowhere = 1;
}

// What the tracer writes, for one kernel of so many nanoseconds.
inline void write_trace(int fd, long long clock, long long ns) {
    dprintf(fd, "{\"kind\":\"start\",\"engine\":\"cuda\",\"device\":\"NVIDIA H200\",\"compute_capability\":\"9.0\",\"driver\":\"13.0\",\"pid\":2,\"clock_ns\":%lld}\n", clock);
    dprintf(fd, "{\"kind\":\"kernel\",\"name\":\"attention\",\"grid\":[64,1,1],\"block\":[128,1,1],\"registers\":32,\"static_shared_bytes\":0,"
                "\"dynamic_shared_bytes\":0,\"local_bytes\":0,\"start_ns\":%lld,\"end_ns\":%lld,\"stream\":7,\"counters\":{}}\n", clock + 1000000, clock + 1000000 + ns);
    dprintf(fd, "{\"kind\":\"end\",\"dropped\":0,\"api_errors_suppressed\":0}\n");
}

inline long long realtime_ns() {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
