// Programs that must fault or be refused: `./faults NAME` prints the error codes that the host sees.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void past_the_end(int *p, int n) { p[threadIdx.x + n] = 1; }
__global__ void read_past_the_end(const int *p, int *out) { out[threadIdx.x] = p[threadIdx.x * 2]; }
__global__ void one_lane_outside(int *p, int n) { if (threadIdx.x == 17) p[n + 3] = 1; }
__global__ void null_pointer(int *p) { *p = 1; }
__global__ void misaligned(char *p, float4 *out) { out[threadIdx.x] = *(float4 *)(p + 4); }
__global__ void shared_past_the_end(int *out) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
__global__ void endless(volatile int *flag) { while (*flag == 0) {} }
__global__ void stuck(int *p) {
    __shared__ int s;
    if (threadIdx.x < 32) {
        __syncthreads();
        s = 1;
        __syncthreads();
    } else
        asm volatile("bar.sync 1, 96;");
    p[threadIdx.x] = s;
}
__device__ __noinline__ void acquire(int *lock) { while (atomicCAS(lock, 0, 1) != 0); }
__global__ void locking(int *p) { acquire(p); p[1] += 1; atomicExch(p, 0); }
__global__ void waiting_for_lanes_that_wait(volatile int *p) {
    if (threadIdx.x < 16) { while (p[0] == 0); p[1] = 1; }
    else { while (p[1] == 0); p[0] = 1; } // either side waits for the other
}
__global__ void asserting(int n) { assert(threadIdx.x < n); }
__global__ void trapping() { if (threadIdx.x == 3) __trap(); }
__global__ void plain(int *p) { p[threadIdx.x] = 7; }
__device__ __noinline__ int deep(int n, int *p) { int a[32]; a[n & 31] = n; return n == 0 ? p[0] : deep(n - 1, p) + a[(n + 1) & 31]; }
__global__ void overflow(int *p) { p[0] = deep(100000, p); }
__global__ void __launch_bounds__(128) bounded(int *p) { p[threadIdx.x] = 1; }

static void say(const char *what, cudaError_t e) { printf("%s %d\n", what, (int)e); }
static void after_launch() {
    say("last", cudaPeekAtLastError());
    say("sync", cudaDeviceSynchronize());
    say("again", cudaGetLastError());
    void *q;
    say("malloc", cudaMalloc(&q, 4));
}

int main(int, char **argv) {
    int *p, *q;
    cudaMalloc(&p, 64 * sizeof(int));
    cudaMalloc(&q, 4096 * sizeof(int));
    const char *name = argv[1];
#define CASE(text) else if (strcmp(name, text) == 0)
    if (strcmp(name, "past_the_end") == 0) past_the_end<<<1, 64>>>(p, 1), after_launch();
    CASE("read_past_the_end") read_past_the_end<<<1, 64>>>(p, q), after_launch();
    CASE("one_lane_outside") one_lane_outside<<<1, 64>>>(p, 64), after_launch();
    CASE("null_pointer") null_pointer<<<1, 1>>>(nullptr), after_launch();
    CASE("host_pointer") plain<<<1, 32>>>((int *)malloc(4096)), after_launch();
    CASE("misaligned") misaligned<<<1, 4>>>((char *)p, (float4 *)q), after_launch();
    CASE("no_dynamic_shared_memory") shared_past_the_end<<<1, 64>>>(q), after_launch();
    CASE("use_after_free") cudaFree(p), plain<<<1, 32>>>(p), after_launch();
    CASE("assertion") asserting<<<1, 64>>>(40), after_launch();
    CASE("trap") trapping<<<1, 32>>>(), after_launch();
    CASE("endless") endless<<<1, 32>>>(p), after_launch();
    CASE("lock_in_a_function") locking<<<1, 32>>>(p), after_launch();
    CASE("lanes_wait_in_a_circle") waiting_for_lanes_that_wait<<<1, 32>>>(p), after_launch();
    CASE("deadlock") stuck<<<1, 64>>>(p), after_launch();
    CASE("stack_overflow") overflow<<<1, 1>>>(p), after_launch();
    CASE("too_many_threads") plain<<<1, 1025>>>(q), after_launch();
    CASE("zero_threads") plain<<<1, 0>>>(q), after_launch();
    CASE("zero_blocks") plain<<<0, 32>>>(q), after_launch();
    CASE("grid_too_high") plain<<<dim3(1, 70000), 32>>>(q), after_launch();
    CASE("too_much_shared") plain<<<1, 32, 50000>>>(q), after_launch();
    CASE("launch_bounds") bounded<<<1, 256>>>(q), after_launch();
    CASE("double_free") say("first", cudaFree(p)), say("second", cudaFree(p));
    CASE("copy_too_long") { char host[4096]; say("copy", cudaMemcpy(p, host, 65 * sizeof(int), cudaMemcpyHostToDevice)); say("last", cudaGetLastError()); say("cleared", cudaGetLastError()); }
    CASE("copy_direction") { char host[4096]; say("copy", cudaMemcpy(host, p, 4, cudaMemcpyHostToDevice)); }
    CASE("copy_null") { char host[8]; say("copy", cudaMemcpy(nullptr, host, 8, cudaMemcpyHostToDevice)); }
    CASE("out_of_memory") say("malloc", cudaMalloc(&p, (size_t)1 << 50));
    CASE("bad_device") say("set", cudaSetDevice(9));
    CASE("reset") { null_pointer<<<1, 1>>>(nullptr); say("sync", cudaDeviceSynchronize()); cudaDeviceReset(); say("malloc", cudaMalloc(&p, 4)); plain<<<1, 1>>>(p); say("sync", cudaDeviceSynchronize()); }
    CASE("host_dereference") { printf("%d\n", p[5]); }
    CASE("freed_host_memory") {
        char *h = (char *)malloc(1 << 16);
        free(h);
        say("wrote", (cudaError_t)fwrite(h, 1, 0x8000, stderr));
    }
    else {
        char *h;
        cudaStream_t s;
        cudaMallocHost(&h, 4096);
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        plain<<<1, 32, 0, s>>>(p);
        if (strcmp(name, "copy_in_another_stream") == 0) cudaMemcpy(h, p, 128, cudaMemcpyDeviceToHost);
        else cudaMemcpyAsync(h, p, 128, cudaMemcpyDeviceToHost, s);
        if (strcmp(name, "copy_not_awaited") != 0) cudaStreamSynchronize(s);
        say("read", (cudaError_t)fwrite(h, 1, 4, stderr));
    }
    return 0;
}
