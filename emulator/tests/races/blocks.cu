// Blocks that hand data to each other without the fence or the atomic that it takes. A line of the race says which program
// it belongs to: `// RACE name`.
#include "../seeded/seeded.h"

__global__ void ready_flags(const float *in, float *partial, volatile int *ready, float *out) {
    const int block = blockIdx.x;
    if (threadIdx.x == 0) {
        partial[block] = in[block] + 1; // RACE flag_between_blocks
        ready[block] = 1;
        if (block > 0) {
            while (!ready[block - 1]) {}
            out[block] = partial[block - 1]; // RACE flag_between_blocks
        }
    }
}
PROGRAM(flag_between_blocks) {
    ready_flags<<<4, 32>>>(filled<float>(4, 1), filled<float>(4), filled<int>(4), filled<float>(4));
}

__device__ unsigned finished;
__global__ void last_block_combines(const float *in, float *partial, float *out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < 32; i++) sum += in[blockIdx.x * 32 + i];
        partial[blockIdx.x] = sum + 1; // RACE last_block_without_fence
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (int b = 0; b < gridDim.x; b++) *out += partial[b]; // RACE last_block_without_fence
}
PROGRAM(last_block_without_fence) {
    last_block_combines<<<6, 64>>>(filled<float>(192, 1), filled<float>(6), filled<float>(1));
}

// Split over the keys: each block adds its share to the row.
__global__ void split_keys(const float *p, float *o) {
    const int row = threadIdx.x;
    float share = p[blockIdx.x * blockDim.x + row] + blockIdx.x;
    o[row] += share; // RACE keys_split_without_atomics
}
PROGRAM(keys_split_without_atomics) { split_keys<<<dim3(3), 64>>>(filled<float>(192, 1), filled<float>(64)); }

// The loop over tiles of K is in the grid: a block rescales what another is writing.
__global__ void rescaled_by_another(const float *k, float *l, float *m) {
    const int row = threadIdx.x;
    const float before = m[row], now = fmaxf(before, k[blockIdx.x * 64 + row] + blockIdx.x); // RACE m_of_another_block
    if (blockIdx.x == 1) m[row] = now; // RACE m_of_another_block
    if (blockIdx.x == 0) l[row] = before - now;
}
PROGRAM(m_of_another_block) {
    rescaled_by_another<<<2, 64>>>(filled<float>(128, 1), filled<float>(64), filled<float>(64));
}
