// Kernel parameters of every size up to the limit of 32,764 bytes, by every way to launch.
#include "conformance.h"

#include <cooperative_groups.h>

template <int BYTES> struct Bytes {
    unsigned char b[BYTES];
};
template <int BYTES> __global__ void sum(Bytes<BYTES> p, unsigned *out) {
    unsigned s = 0;
    for (int i = threadIdx.x; i < BYTES; i += 32) s += p.b[i] * (i % 251 + 1u);
    atomicAdd(out, s);
}
template <int BYTES> static unsigned expected(const Bytes<BYTES> &p) {
    unsigned s = 0;
    for (int i = 0; i < BYTES; i++) s += p.b[i] * (i % 251 + 1u);
    return s;
}
template <int BYTES> static void fill(Bytes<BYTES> &p, unsigned seed) {
    for (int i = 0; i < BYTES; i++) p.b[i] = (unsigned char)noise(i + seed);
}
template <int BYTES> static bool arrives() {
    static Bytes<BYTES> p;
    fill(p, BYTES);
    Array<unsigned> out(4);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    sum<BYTES><<<1, 32>>>(p, out.device);
    CHECK(cudaGetLastError());

    cudaLaunchConfig_t config = {};
    config.gridDim = 1, config.blockDim = 32, config.stream = stream;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaLaunchKernelEx(&config, sum<BYTES>, p, out.device + 1));
    CHECK(cudaStreamSynchronize(stream));

    unsigned *third = out.device + 2, *fourth = out.device + 3;
    void *cooperative[] = {&p, &third};
    CHECK(cudaLaunchCooperativeKernel((const void *)sum<BYTES>, dim3(1), dim3(32), cooperative, 0, stream));
    CHECK(cudaStreamSynchronize(stream));

    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    sum<BYTES><<<1, 32, 0, stream>>>(p, fourth);
    CHECK(cudaStreamEndCapture(stream, &graph));
    unsigned whole = expected(p);
    memset(&p, 0, sizeof p); // the graph has a copy
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    return equal(out.down(), [&](size_t i) { return i == 3 ? 2 * whole : whole; });
}
// The whole of a parameter space is the structure, padding to 8 bytes, and the pointer.
TEST(parameters_of_few_bytes) { return arrives<1>() && arrives<3>() && arrives<16>() && arrives<129>() && arrives<1000>(); }
TEST(parameters_around_4_kilobytes) { return arrives<4080>() && arrives<4088>() && arrives<4089>() && arrives<4096>() && arrives<5000>(); }
TEST(parameters_of_many_kilobytes) { return arrives<8192>() && arrives<16385>() && arrives<32000>(); }
TEST(parameters_up_to_the_limit) { return arrives<32752>(); }

struct Table {
    double d[2000];
    int where[3000];
    float f;
};
__global__ void __launch_bounds__(128) look_up(const __grid_constant__ Table t, const int *index, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = t.d[t.where[index[i] % 3000]] * t.f;
}
TEST(large_parameters_indexed_at_run_time_in_many_blocks) {
    static Table t;
    for (int i = 0; i < 2000; i++) t.d[i] = i * 0.25;
    for (int i = 0; i < 3000; i++) t.where[i] = (int)(noise(i) % 2000);
    t.f = 3;
    Array<int> index(2048, [](size_t i) { return (int)(noise(i + 9) % 100000); }, 0);
    Array<double> out(2048);
    look_up<<<16, 128>>>(t, index.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { return t.where[index.host[i] % 3000] * 0.25 * 3; });
}

struct Limit {
    unsigned low, high; // of a pointer, so that all is a multiple of 4 only
    unsigned char b[32764 - 8];
};
__global__ void whole_space(Limit p) {
    unsigned s = 0;
    for (int i = 0; i < (int)sizeof p.b; i++) s += p.b[i] * (i % 251 + 1u);
    *(unsigned *)((unsigned long long)p.high << 32 | p.low) = s;
}
TEST(parameters_of_exactly_the_limit) {
    static_assert(sizeof(Limit) == 32764, "the limit of sm_70 and later");
    static Limit p;
    Array<unsigned> out(1);
    p.low = (unsigned)(uintptr_t)out.device, p.high = (unsigned)((uintptr_t)out.device >> 32);
    unsigned s = 0;
    for (size_t i = 0; i < sizeof p.b; i++) p.b[i] = (unsigned char)noise(i), s += p.b[i] * (unsigned)(i % 251 + 1);
    whole_space<<<1, 1>>>(p);
    return finished() && equal(out.down(), [&](size_t) { return s; });
}
