// Kernels with a loop that never ends, among loops that do. Its line is marked with the name of the program.
#include "seeded/seeded.h"
#include <unistd.h>

__global__ void no_increment(float *out, int n) {
    float sum = 0;
    int k = 0;
    while (k < n) { // ENDLESS outer_without_increment
        for (int i = 0; i < 100; i++) sum += i * out[i];
        for (int j = 0; j < 50; j++) sum -= j;
        out[threadIdx.x] = sum;
    }
}
PROGRAM(outer_without_increment) { no_increment<<<2, 64>>>(filled<float>(256), 10); }

__global__ void search(const int *sorted, int *out, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += sorted[i];
    int low = 0, high = n - 1;
    while (low < high) { // ENDLESS search_that_rounds_down
        const int middle = (low + high) / 2;
        if (sorted[middle] <= threadIdx.x) low = middle;
        else high = middle - 1;
    }
    out[threadIdx.x] = low + sum;
}
PROGRAM(search_that_rounds_down) { search<<<1, 64>>>(filled<int>(256), filled<int>(256), 100); }

__global__ void strided(float *out, int n, int step) {
    float sum = 0;
    for (int r = 0; r < 8; r++)
        for (int c = 0; c < n; c++) sum += out[c];
    for (int i = threadIdx.x; i < n; i += step) sum += out[i]; // ENDLESS step_of_zero
    for (int r = 0; r < 8; r++) sum *= 0.5f;
    out[threadIdx.x] = sum;
}
PROGRAM(step_of_zero) { strided<<<1, 64>>>(filled<float>(256), 100, 0); }

__global__ void tiles(float *out, int n) {
    __shared__ float s[64];
    int k = n;
    while (k > 0) { // ENDLESS begins_again_with_barriers
        for (int j = 0; j < 20; j++) {
            s[threadIdx.x] = out[(threadIdx.x + j) & 63];
            __syncthreads();
            out[threadIdx.x] = s[63 - threadIdx.x];
            __syncthreads();
        }
        if (k == 1) k = n;
        else k--;
    }
}
PROGRAM(begins_again_with_barriers) { tiles<<<1, 64>>>(filled<float>(256), 5); }

__global__ void halved(float *out, int n) {
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < n; i++) out[threadIdx.x] += i;
        if (threadIdx.x < 7)
            for (unsigned half = n / 2; half >= 0; half /= 2) // ENDLESS unsigned_is_never_negative
                atomicAdd(&out[threadIdx.x], half);
    }
}
PROGRAM(unsigned_is_never_negative) { halved<<<3, 40>>>(filled<float>(256), 16); }

__global__ void waits_for_a_flag(volatile int *flag, int *out) {
    for (int i = 0; i < 10; i++) out[i] = i;
    if (threadIdx.x == 0)
        while (*flag == 0) {} // ENDLESS flag_that_nobody_sets
    __syncthreads();
    out[threadIdx.x] = 1;
}
PROGRAM(flag_that_nobody_sets) { waits_for_a_flag<<<4, 64>>>(filled<int>(1), filled<int>(64)); }

__global__ void locked(int *lock, int *value) {
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {} // ENDLESS lock_that_nobody_releases
        for (int i = 0; i < 100; i++) *value += 1;
    }
}
PROGRAM(lock_that_nobody_releases) { locked<<<4, 64>>>(filled<int>(1), filled<int>(1)); }

static int still_to_do = 1;
__attribute__((noinline, section(".text.loop"))) static void first_in_its_section(float *values) { // as main is
    while (still_to_do > 0) { // ENDLESS host_loop
        for (int i = 0; i < 1000; i++) values[i] = values[i] * 0.5f + 1;
        if (values[0] > 3) still_to_do--;
    }
}
PROGRAM(host_loop) { first_in_its_section(std::vector<float>(1000).data()); }

// ---- loops that end, and look as if they did not

__global__ void one_after_the_other(volatile int *turn, float *out) {
    for (int k = 0; k < 20; k++) {
        if (threadIdx.x == 0)
            while (*turn != k * gridDim.x + blockIdx.x) {}
        __syncthreads();
        for (int i = 0; i < 20000; i++) out[threadIdx.x] = out[threadIdx.x] * 0.5f + i;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *turn = *turn + 1;
    }
}
PROGRAM(ends_blocks_that_take_turns) { one_after_the_other<<<4, 64>>>(filled<int>(1), filled<float>(64)); }

__global__ void long_sum(float *out, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 1000; j++) sum = sum * 0.5f + j;
    out[threadIdx.x] = sum;
}
PROGRAM(ends_a_long_sum) { long_sum<<<1, 32>>>(filled<float>(32), 50000); }

__global__ void until_equal(volatile int *counter, int n) {
    if (threadIdx.x == 0)
        while (*counter < n) {}
    else if (threadIdx.x == 32)
        for (int i = 0; i < n; i++) {
            *counter = i + 1;
            for (volatile int wait = 0; wait < 100; wait = wait + 1) {}
        }
}
PROGRAM(ends_when_another_warp_has_counted) { until_equal<<<1, 64>>>(filled<int>(1), 30000); }

__global__ void waits_for_the_host(volatile int *flag, int *out) {
    while (*flag == 0) {}
    out[threadIdx.x] = 1;
}
static void sets_it_later(void *flag) {
    volatile double x = 1;
    for (int i = 0; i < 200000000; i++) x = x * 0.999;
    *(volatile int *)flag = 1;
}
PROGRAM(ends_when_the_host_sets_its_flag_before_it_waits) {
    int *flag, *out = filled<int>(32);
    cudaMallocManaged(&flag, 4);
    for (int i = 0; i < 30; i++) { // at other moments of the search for loops that never end
        *flag = 0;
        waits_for_the_host<<<1, 32>>>(flag, out);
        usleep(20000 + 997 * i);
        *(volatile int *)flag = 1;
        if (cudaDeviceSynchronize()) return;
    }
}
PROGRAM(ends_when_a_function_in_another_stream_sets_its_flag) {
    int *flag, *out = filled<int>(32);
    cudaMallocManaged(&flag, 4);
    *flag = 0;
    cudaStream_t other[2];
    for (cudaStream_t &stream : other) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    waits_for_the_host<<<1, 32, 0, other[0]>>>(flag, out);
    cudaLaunchHostFunc(other[1], sets_it_later, flag);
}
