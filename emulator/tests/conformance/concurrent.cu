// Kernels that wait for the host or for each other: what a launch that blocks could never end.
#include "conformance.h"
#include <atomic>

// Waits until the word holds the value; gives up in the end, so that a mistake fails and does not hang.
__device__ bool await(volatile int *word, int value) {
    for (long long turns = 0; turns < 1ll << 40; turns++)
        if (*word == value) return true;
    return false;
}
__global__ void wait_for(volatile int *flag, int value, int *result) { *result = await(flag, value) ? value * 3 : -1; }
__global__ void every_block_waits(volatile int *flag, int *results) {
    if (threadIdx.x == 0) await(flag, 1);
    __syncthreads();
    results[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x + threadIdx.x;
}
__global__ void hand_over(volatile int *mine, volatile int *other, int rounds, int *result) {
    int sum = 0;
    for (int i = 1; i <= rounds; i++) {
        *mine = i;
        __threadfence_system();
        sum += await(other, i) ? i : -1000000;
        while (*other < i) {}
    }
    *result = sum;
}
__global__ void answer(volatile int *request, volatile int *reply, int rounds) {
    for (int i = 1; i <= rounds; i++) {
        await(request, i);
        *reply = i * i;
        __threadfence_system();
    }
}
__global__ void twice(int *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= 2;
}

struct Flags {
    volatile int *word = nullptr;
    Flags() {
        // A kernel that is loaded at its first launch may wait for those that run: load them all before.
        cudaFuncAttributes a;
        for (const void *f : {(const void *)wait_for, (const void *)every_block_waits, (const void *)hand_over, (const void *)answer, (const void *)twice}) cudaFuncGetAttributes(&a, f);
        cudaHostAlloc((void **)&word, 64 * sizeof(int), cudaHostAllocMapped);
        for (int i = 0; i < 64; i++) word[i] = 0;
    }
    ~Flags() { cudaFreeHost((void *)word); }
    int *at(int i) { return (int *)word + i; }
};

TEST(a_kernel_waits_for_the_hosts_flag) {
    Flags flags;
    Array<int> result(1);
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    wait_for<<<1, 1, 0, s>>>(flags.at(0), 7, result.device);
    CHECK(cudaGetLastError());
    EXPECT(cudaStreamQuery(s) == cudaErrorNotReady);
    cudaGetLastError();
    flags.word[0] = 7;
    CHECK(cudaStreamSynchronize(s));
    EXPECT(cudaStreamQuery(s) == cudaSuccess);
    CHECK(cudaStreamDestroy(s));
    return equal(result.down(), [](size_t) { return 21; });
}
TEST(many_blocks_wait_for_the_hosts_flag) {
    Flags flags;
    Array<int> results(16 * 64);
    every_block_waits<<<16, 64>>>(flags.at(0), results.device);
    flags.word[0] = 1;
    return finished() && equal(results.down(), [](size_t i) { return int(i / 64 + i % 64); });
}
TEST(host_and_kernel_take_turns) {
    Flags flags;
    answer<<<1, 1>>>(flags.at(0), flags.at(16), 20);
    for (int i = 1; i <= 20; i++) {
        flags.word[0] = i;
        while (flags.word[16] != i * i) {}
    }
    return finished();
}
TEST(kernels_of_two_streams_wait_for_each_other) {
    Flags flags;
    Array<int> results(2);
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    hand_over<<<1, 1, 0, a>>>(flags.at(0), flags.at(16), 1, results.device);
    hand_over<<<1, 1, 0, b>>>(flags.at(16), flags.at(0), 1, results.device + 1);
    CHECK(cudaStreamSynchronize(a));
    CHECK(cudaStreamSynchronize(b));
    CHECK(cudaStreamDestroy(a));
    CHECK(cudaStreamDestroy(b));
    return equal(results.down(), [](size_t) { return 1; });
}
TEST(what_follows_a_waiting_kernel_keeps_its_order) {
    Flags flags;
    const int n = 1000;
    Array<int> result(1), x(n);
    int *to, *from;
    CHECK(cudaMallocHost((void **)&to, n * sizeof(int)));
    CHECK(cudaMallocHost((void **)&from, n * sizeof(int)));
    for (int i = 0; i < n; i++) from[i] = i + 1, to[i] = -1;
    cudaStream_t s, other;
    cudaEvent_t before, after;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    static std::atomic<int> called;
    called = 0;
    CHECK(cudaEventRecord(before, s));
    wait_for<<<1, 1, 0, s>>>(flags.at(0), 5, result.device);
    CHECK(cudaMemcpyAsync(x.device, from, n * sizeof(int), cudaMemcpyHostToDevice, s));
    twice<<<4, 256, 0, s>>>(x.device, n);
    CHECK(cudaMemsetAsync(x.device, 0, 4, s));
    CHECK(cudaLaunchHostFunc(s, [](void *) { called += 1; }, nullptr));
    CHECK(cudaEventRecord(after, s));
    CHECK(cudaStreamWaitEvent(other, after, 0));
    CHECK(cudaMemcpyAsync(to, x.device, n * sizeof(int), cudaMemcpyDeviceToHost, other));
    float ms;
    EXPECT(cudaEventQuery(before) == cudaSuccess || cudaEventQuery(before) == cudaErrorNotReady);
    EXPECT(cudaEventQuery(after) == cudaErrorNotReady && cudaStreamQuery(other) == cudaErrorNotReady);
    EXPECT(cudaEventElapsedTime(&ms, before, after) == cudaErrorNotReady);
    cudaGetLastError();
    EXPECT(called == 0 && to[0] == -1 && to[n - 1] == -1);
    flags.word[0] = 5;
    CHECK(cudaStreamSynchronize(other));
    EXPECT(called == 1);
    for (int i = 0; i < n; i++) EXPECT(to[i] == (i ? 2 * (i + 1) : 0));
    CHECK(cudaEventElapsedTime(&ms, before, after));
    EXPECT(ms > 0);
    CHECK(cudaFreeHost(to));
    CHECK(cudaFreeHost(from));
    return equal(result.down(), [](size_t) { return 15; });
}
TEST(the_default_stream_waits_for_blocking_streams) {
    Flags flags;
    Array<int> result(1), x(100, 1);
    cudaStream_t blocking;
    CHECK(cudaStreamCreate(&blocking));
    wait_for<<<1, 1, 0, blocking>>>(flags.at(0), 2, result.device);
    twice<<<1, 128>>>(x.device, 100);
    EXPECT(cudaStreamQuery(0) == cudaErrorNotReady);
    cudaGetLastError();
    flags.word[0] = 2;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamDestroy(blocking));
    return equal(x.down(), [](size_t) { return 2; }) && equal(result.down(), [](size_t) { return 6; });
}
