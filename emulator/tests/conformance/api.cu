// The runtime API: memory, streams, events, graphs, attributes, occupancy, errors.
#include "conformance.h"

__global__ void add_one(int *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i]++;
}
__global__ void heavy(float *p) {
    __shared__ float s[4096];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[threadIdx.x ^ 1];
}
TEST(copies_in_two_dimensions) {
    const int w = 40, h = 11;
    std::vector<int> host(w * h), back(64 * h, -1);
    for (int i = 0; i < w * h; i++) host[i] = i;
    int *d;
    size_t pitch;
    CHECK(cudaMallocPitch(&d, &pitch, w * 4, h));
    EXPECT(pitch >= w * 4 && pitch % 256 == 0);
    CHECK(cudaMemcpy2D(d, pitch, host.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
    CHECK(cudaMemset2D(d, pitch, 0xff, 8, 3));
    CHECK(cudaMemcpy2D(back.data(), 64 * 4, d, pitch, w * 4, h, cudaMemcpyDeviceToHost));
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) EXPECT(back[y * 64 + x] == (y < 3 && x < 2 ? -1 : y * w + x));
    EXPECT(cudaMemcpy2D(d, 8, host.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidPitchValue && cudaGetLastError() == cudaSuccess);
    CHECK(cudaFree(d));
    return true;
}
TEST(pinned_and_registered_and_managed_memory) {
    int *pinned, *managed, *mapped;
    CHECK(cudaMallocHost((void **)&pinned, 400));
    CHECK(cudaMallocManaged(&managed, 400));
    CHECK(cudaHostAlloc((void **)&mapped, 400, cudaHostAllocMapped));
    std::vector<int> ordinary(100);
    CHECK(cudaHostRegister(ordinary.data(), 400, cudaHostRegisterDefault));
    int *device_view;
    CHECK(cudaHostGetDevicePointer((void **)&device_view, mapped, 0));
    for (int i = 0; i < 100; i++) pinned[i] = managed[i] = mapped[i] = ordinary[i] = i;
    int *registered_view;
    CHECK(cudaHostGetDevicePointer((void **)&registered_view, ordinary.data(), 0));
    add_one<<<1, 128>>>(pinned, 100), add_one<<<1, 128>>>(managed, 100), add_one<<<1, 128>>>(device_view, 100), add_one<<<1, 128>>>(registered_view, 100);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 100; i++) EXPECT(pinned[i] == i + 1 && managed[i] == i + 1 && mapped[i] == i + 1 && ordinary[i] == i + 1);
    cudaPointerAttributes a;
    CHECK(cudaPointerGetAttributes(&a, managed));
    EXPECT(a.type == cudaMemoryTypeManaged);
    CHECK(cudaPointerGetAttributes(&a, pinned));
    EXPECT(a.type == cudaMemoryTypeHost);
    CHECK(cudaHostUnregister(ordinary.data()));
    EXPECT(cudaHostUnregister(ordinary.data()) == cudaErrorHostMemoryNotRegistered);
    cudaGetLastError();
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFreeHost(mapped));
    CHECK(cudaFree(managed));
    return true;
}
TEST(stream_ordered_allocation) {
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    int *p, host[50];
    CHECK(cudaMallocAsync(&p, sizeof host, s));
    CHECK(cudaMemsetAsync(p, 0, sizeof host, s));
    add_one<<<1, 64, 0, s>>>(p, 50);
    CHECK(cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, s));
    CHECK(cudaFreeAsync(p, s));
    CHECK(cudaStreamSynchronize(s));
    for (int v : host) EXPECT(v == 1);
    CHECK(cudaStreamDestroy(s));
    return true;
}
TEST(streams_and_events) {
    cudaStream_t a, b;
    cudaEvent_t start, mid, end;
    CHECK(cudaStreamCreate(&a));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreateWithFlags(&mid, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&end));
    Array<int> x(1000);
    CHECK(cudaEventRecord(start, a));
    for (int i = 0; i < 5; i++) add_one<<<4, 256, 0, a>>>(x.device, 1000);
    CHECK(cudaEventRecord(mid, a));
    CHECK(cudaStreamWaitEvent(b, mid, 0));
    add_one<<<4, 256, 0, b>>>(x.device, 1000);
    CHECK(cudaEventRecord(end, b));
    CHECK(cudaEventSynchronize(end));
    EXPECT(cudaEventQuery(end) == cudaSuccess && cudaStreamQuery(b) == cudaSuccess);
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, start, end));
    EXPECT(ms > 0 && ms < 60000);
    EXPECT(cudaEventElapsedTime(&ms, start, mid) == cudaErrorInvalidResourceHandle);
    cudaGetLastError();
    CHECK(cudaEventDestroy(start));
    CHECK(cudaStreamDestroy(a));
    return equal(x.down(), [](size_t) { return 6; });
}
TEST(host_functions_in_streams) {
    static int called;
    called = 0;
    CHECK(cudaLaunchHostFunc(0, [](void *p) { *(int *)p += 5; }, &called));
    CHECK(cudaDeviceSynchronize());
    EXPECT(called == 5);
    return true;
}
TEST(graphs_by_capture) {
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreate(&s));
    Array<int> x(256), y(256);
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add_one<<<1, 256, 0, s>>>(x.device, 256);
    CHECK(cudaMemcpyAsync(y.device, x.device, 1024, cudaMemcpyDeviceToDevice, s));
    add_one<<<1, 256, 0, s>>>(y.device, 128);
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(x.down()[0] == 0);
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return equal(x.down(), [](size_t) { return 3; }) && equal(y.down(), [](size_t i) { return i < 128 ? 4 : 3; });
}
TEST(device_properties) {
    int count = 0, device = -1, threads = 0, sms = 0;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(count >= 1);
    CHECK(cudaSetDevice(0));
    CHECK(cudaGetDevice(&device));
    EXPECT(device == 0);
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    EXPECT(p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && threads == 1024 && sms == p.multiProcessorCount && p.sharedMemPerBlock == 49152 && p.major >= 8);
    size_t free_bytes, total;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    EXPECT(free_bytes <= total && total > (1ull << 30));
    int version;
    CHECK(cudaRuntimeGetVersion(&version));
    EXPECT(version >= 12000);
    return true;
}
TEST(function_attributes_and_occupancy) {
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, heavy));
    EXPECT(a.sharedSizeBytes == 16384 && a.numRegs > 0 && a.numRegs <= 255 && a.maxThreadsPerBlock == 1024);
    int blocks;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_one, 1024, 0));
    EXPECT(blocks == 2);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_one, 64, 0));
    EXPECT(blocks == 32);
    int grid, block;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add_one, 0, 0));
    EXPECT(block == 1024 && grid >= 2);
    return true;
}
TEST(launch_through_the_api) {
    Array<int> x(100);
    int n = 100;
    void *arguments[] = {&x.device, &n};
    CHECK(cudaLaunchKernel((const void *)add_one, dim3(1), dim3(128), arguments, 0, 0));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1), config.blockDim = dim3(128);
    CHECK(cudaLaunchKernelEx(&config, add_one, x.device, n));
    return finished() && equal(x.down(), [](size_t) { return 2; });
}
TEST(errors_are_remembered_once) {
    int *p = (int *)1;
    EXPECT(cudaMalloc(&p, (size_t)1 << 60) == cudaErrorMemoryAllocation);
    EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
    add_one<<<1, 2000>>>(nullptr, 0);
    const cudaError_t refused = CUDART_VERSION >= 13000 ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration;
    EXPECT(cudaGetLastError() == refused && cudaDeviceSynchronize() == cudaSuccess);
    return true;
}
TEST(limits_and_cache_preferences) {
    size_t v;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
    CHECK(cudaDeviceGetLimit(&v, cudaLimitMallocHeapSize));
    EXPECT(v >= 64 << 20);
    CHECK(cudaFuncSetCacheConfig(add_one, cudaFuncCachePreferShared));
    CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    int low, high;
    CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
    EXPECT(high <= low);
    return true;
}
__global__ void prints(int n) {
    if (threadIdx.x < n) printf("thread %d of %s: %5.2f %c %llx %%\n", threadIdx.x, "three", threadIdx.x * 0.5, 'a' + threadIdx.x, 0x123456789abcull + threadIdx.x);
}
TEST(printf_in_kernels) {
    prints<<<1, 32>>>(3);
    return finished();
}
TEST(fresh_memory_is_zero_and_survives_other_frees) {
    int *a, *b, host[256];
    CHECK(cudaMalloc(&a, 1024));
    CHECK(cudaMemset(a, 1, 1024));
    CHECK(cudaFree(a));
    CHECK(cudaMalloc(&b, 1024));
    CHECK(cudaMemset(b, 0, 1024));
    CHECK(cudaMemcpy(host, b, 1024, cudaMemcpyDeviceToHost));
    for (int v : host) EXPECT(v == 0);
    CHECK(cudaFree(nullptr));
    return cudaFree(b) == cudaSuccess;
}
