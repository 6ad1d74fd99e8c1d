// The processor computes while a kernel spins, as long as it takes: processor time that waiting for the GPU explains.
// expect: passed | time_limit; gpu; on t10; at least 100 ms
#include "hostile_attention.h"

__global__ void spin(volatile int* done) {
    long long began, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (!*done && now - began < 5000000000);
}

int main(int, char** argv) {
    int* done;
    cudaHostAlloc(&done, 4, cudaHostAllocMapped);
    *done = 0;
    spin<<<1, 1>>>(done);
    const std::vector<float> values = right_answer(argv[1]);
    *(volatile int*)done = 1;
    cudaDeviceSynchronize();
    write_values(argv[2], values);
}
