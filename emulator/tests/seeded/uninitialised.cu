// Reads of memory that nothing has written.
#include "seeded.h"

__global__ void copy(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * 2; // BUG never_written: init // BUG memset_of_elements: init // BUG last_element_not_copied: init // BUG source_not_written: init
}
PROGRAM(never_written) { copy<<<2, 64>>>(fresh<int>(128), filled<int>(128), 128); }
PROGRAM(memset_of_elements) {
    int *p = fresh<int>(128);
    cudaMemset(p, 0, 128); // elements, not bytes
    copy<<<2, 64>>>(p, filled<int>(128), 128);
}
PROGRAM(last_element_not_copied) {
    std::vector<int> host(100);
    int *p = fresh<int>(100);
    cudaMemcpy(p, host.data(), 99 * sizeof(int), cudaMemcpyHostToDevice);
    copy<<<2, 64>>>(p, filled<int>(128), 100);
}
PROGRAM(source_not_written) {
    int *p = filled<int>(64), *q = fresh<int>(64);
    cudaMemcpy(p, q, 256, cudaMemcpyDeviceToDevice);
    copy<<<1, 64>>>(p, filled<int>(64), 64);
}

__global__ void accumulate(float *sum, int rounds) {
    for (int k = 0; k < rounds; k++) sum[threadIdx.x] += k; // BUG accumulator_not_cleared: init
}
PROGRAM(accumulator_not_cleared) { accumulate<<<1, 32>>>(fresh<float>(32), 3); }

__global__ void count(int *counter) {
    atomicAdd(counter, 1); // BUG atomic_counter_not_cleared: init
}
PROGRAM(atomic_counter_not_cleared) { count<<<1, 32>>>(fresh<int>(1)); }

__global__ void tail(int *out, int n) {
    __shared__ int s[64];
    if (threadIdx.x < n) s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x]; // BUG shared_tail: init
}
PROGRAM(shared_tail) { tail<<<1, 64>>>(filled<int>(64), 50); }

__global__ void shared_sum(int *out) {
    __shared__ int sum[4];
    atomicAdd(&sum[0], 1); // BUG shared_sum_not_cleared: init
    __syncthreads();
    out[threadIdx.x] = sum[0];
}
PROGRAM(shared_sum_not_cleared) { shared_sum<<<1, 32>>>(filled<int>(32)); }

__global__ void halo(const float *in, float *out) {
    __shared__ float s[66];
    s[threadIdx.x + 1] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 2]; // BUG halo_not_loaded: init
}
PROGRAM(halo_not_loaded) { halo<<<1, 64>>>(filled<float>(64), filled<float>(64)); }

__global__ void from_the_heap(int *out) {
    int *p = (int *)malloc(8 * sizeof(int));
    for (int k = 0; k < 7; k++) p[k] = k;
    out[threadIdx.x] = p[threadIdx.x & 7]; // BUG device_heap_not_written: init
    free(p);
}
PROGRAM(device_heap_not_written) { from_the_heap<<<1, 32>>>(filled<int>(32)); }

__global__ void first_half(int *out, int n) {
    if (threadIdx.x < n / 2) out[threadIdx.x] = 1;
}
PROGRAM(result_not_written) {
    std::vector<int> host(128);
    int *p = fresh<int>(128);
    first_half<<<1, 128>>>(p, 128);
    cudaMemcpy(host.data(), p, 512, cudaMemcpyDeviceToHost); // BUG result_not_written: init host
}
