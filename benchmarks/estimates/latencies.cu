// Latencies of a load in cycles: one thread follows pointers through shared memory, and through arrays that L1, L2 and only
// DRAM hold. Build and run: nvcc -O3 -arch=native latencies.cu -o latencies && ./latencies

#include <cstdio>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

constexpr int STEPS = 4096;

__global__ void follow(const unsigned* next, unsigned start, long long* cycles, unsigned* end) {
    unsigned at = start;
    for (int i = 0; i < STEPS; ++i) at = next[at];    // so that caches hold what they can
    const long long begin = clock64();
    for (int i = 0; i < STEPS; ++i) at = next[at];
    *cycles = clock64() - begin, *end = at;
}

__global__ void follow_shared(const unsigned* next, long long* cycles, unsigned* end) {
    __shared__ unsigned ring[1024];
    for (int i = 0; i < 1024; ++i) ring[i] = next[i];
    unsigned at = 0;
    const long long begin = clock64();
    for (int i = 0; i < STEPS; ++i) at = ring[at];
    *cycles = clock64() - begin, *end = at;
}

// A random ring through every line of 128 bytes of so many bytes.
static double cycles_of(size_t bytes, bool shared) {
    const size_t lines = bytes / 128, stride = shared ? 1 : 32;
    std::vector<unsigned> order(lines), next(lines * stride);
    std::iota(order.begin(), order.end(), 0u);
    std::mt19937 dice(1);
    for (size_t i = lines - 1; i > 0; --i) std::swap(order[i], order[dice() % (i + 1)]);
    for (size_t i = 0; i < lines; ++i) next[order[i] * stride] = unsigned(order[(i + 1) % lines] * stride);
    unsigned *device, *end;
    long long *cycles, best = 1ll << 60;
    cudaMalloc(&device, next.size() * 4), cudaMallocManaged(&cycles, 8), cudaMallocManaged(&end, 4);
    cudaMemcpy(device, next.data(), next.size() * 4, cudaMemcpyHostToDevice);
    for (int run = 0; run < 3; ++run) {
        if (shared) follow_shared<<<1, 1>>>(device, cycles, end);
        else follow<<<1, 1>>>(device, order[size_t(run) * lines / 3] * unsigned(stride), cycles, end);
        if (cudaDeviceSynchronize() != cudaSuccess) std::printf("%s\n", cudaGetErrorString(cudaGetLastError()));
        if (*cycles < best) best = *cycles;
    }
    cudaFree(device);
    return double(best) / STEPS;
}

int main() {
    std::printf("shared %.1f\n", cycles_of(1024 * 128, true));
    for (const auto& [name, bytes] : {std::pair<const char*, size_t>{"L1", 32 << 10}, {"L2", 8 << 20}, {"DRAM", 1ul << 30}})
        std::printf("%s %.1f\n", name, cycles_of(bytes, false));
}
