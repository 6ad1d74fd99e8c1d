// Correct programs of the kinds that a sanitizer gets wrong: nothing may be reported about any of them.
#include "seeded.h"

#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

namespace cg = cooperative_groups;

// As in the programming guide's section on memory fences: the last block to arrive adds up.
__device__ unsigned arrived = 0;
__global__ void sum(const float *array, unsigned n, volatile float *partial, float *total) {
    __shared__ bool last;
    __shared__ float s[128];
    unsigned t = threadIdx.x;
    s[t] = 0;
    for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) s[t] += array[i];
    __syncthreads();
    for (int k = 64; k; k >>= 1) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(&arrived, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        if (t == 0) {
            float r = 0;
            for (int b = 0; b < gridDim.x; b++) r += partial[b];
            *total = r;
            arrived = 0;
        }
    }
}
PROGRAM(thread_fence_reduction) { sum<<<6, 128>>>(filled<float>(3000), 3000, fresh<float>(6), fresh<float>(1)); }

// All threads write, each fences, one counts; the last block reads with plain loads.
__global__ void all_write_then_count(int *data, unsigned *counter, int *out) {
    __shared__ bool last;
    data[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    int r = 0;
    for (int i = threadIdx.x; i < gridDim.x * blockDim.x; i += blockDim.x) r += data[i];
    out[threadIdx.x] = r;
}
PROGRAM(last_block_with_plain_loads) { all_write_then_count<<<5, 96>>>(fresh<int>(480), filled<unsigned>(1), fresh<int>(96)); }

__global__ void producer_and_consumer(int *data, volatile int *flag, int *out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x + 1;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *flag = 1;
    } else {
        if (threadIdx.x == 0)
            while (*flag == 0) {}
        __syncthreads();
        __threadfence();
        out[threadIdx.x] = data[threadIdx.x];
    }
}
PROGRAM(flag_between_blocks) { producer_and_consumer<<<2, 64>>>(fresh<int>(64), filled<int>(1), fresh<int>(64)); }

__global__ void jacobi(float *a, float *b, int n, int rounds) {
    cg::grid_group grid = cg::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < rounds; k++) {
        if (i > 0 && i < n - 1) b[i] = (a[i - 1] + a[i + 1]) / 2;
        grid.sync();
        float *t = a;
        a = b, b = t;
    }
}
PROGRAM(grid_sync) {
    float *a = filled<float>(256), *b = filled<float>(256);
    int n = 256, rounds = 4;
    void *arguments[] = {&a, &b, &n, &rounds};
    cudaLaunchCooperativeKernel((void *)jacobi, dim3(4), dim3(64), arguments, 0, 0);
}

__global__ void guarded(int *lock, int *value) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *value += 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}
PROGRAM(lock_between_blocks) { guarded<<<8, 32>>>(filled<int>(1), filled<int>(1)); }

__global__ void float_maximum(float *best, const float *in) {
    float v = in[blockIdx.x * blockDim.x + threadIdx.x] + threadIdx.x;
    int *p = (int *)best, old = *p;
    while (__int_as_float(old) < v) {
        int assumed = old;
        old = atomicCAS(p, assumed, __float_as_int(v));
        if (old == assumed) break;
    }
}
PROGRAM(first_look_before_compare_and_swap) { float_maximum<<<4, 64>>>(filled<float>(1), filled<float>(256)); }

__global__ void mark(const int *in, bool *changed, unsigned char *seen) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    seen[i] = (unsigned char)(in[i] + i); // neighbours in one word
    if (i % 3 == 0) *changed = true;
}
PROGRAM(all_write_the_same_value) { mark<<<4, 64>>>(filled<int>(256), filled<bool>(1), fresh<unsigned char>(256)); }

__global__ void bytes_in_place(unsigned char *p) {
    int i = blockIdx.x * 33 + threadIdx.x;
    if (threadIdx.x < 33) p[i] = (unsigned char)(p[i] * 3 + 1);
}
PROGRAM(bytes_of_one_word_by_two_blocks) { bytes_in_place<<<7, 64>>>(filled<unsigned char>(231)); }

__global__ void tiles_of_eight(int *out) {
    __shared__ int s[64];
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    s[threadIdx.x] = threadIdx.x;
    tile.sync();
    int v = s[threadIdx.x ^ 7];
    tile.sync();
    s[threadIdx.x] = v;
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x ^ 1] + tile.shfl_xor(v, 2);
}
PROGRAM(syncing_parts_of_a_warp) { tiles_of_eight<<<1, 64>>>(fresh<int>(64)); }

__global__ void both_sides_sync(int *out) {
    __shared__ int s[32];
    if (threadIdx.x < 16) {
        s[threadIdx.x] = 1;
        __syncwarp(0x0000ffffu);
        out[threadIdx.x] = s[15 - threadIdx.x];
    } else {
        s[threadIdx.x] = 2;
        __syncwarp(0xffff0000u);
        out[threadIdx.x] = s[47 - threadIdx.x];
    }
    __syncwarp();
}
PROGRAM(syncwarp_on_both_sides_of_a_branch) { both_sides_sync<<<1, 32>>>(fresh<int>(32)); }

__global__ void leaving_early(const int *in, int *out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    int v = in[i];
    __syncwarp();
    v += __shfl_xor_sync(__activemask(), v, 1);
    out[i] = v;
}
PROGRAM(threads_that_leave_early) { leaving_early<<<1, 64>>>(filled<int>(64), fresh<int>(64), 40); }

struct Padded {
    char tag;
    double value;
};
__global__ void structures(Padded *p) {
    p[threadIdx.x].tag = 1;
    p[threadIdx.x].value = threadIdx.x;
}
PROGRAM(padding_is_not_written) {
    std::vector<Padded> host(64);
    Padded *p = fresh<Padded>(64);
    structures<<<1, 64>>>(p);
    cudaMemcpy(host.data(), p, 64 * sizeof(Padded), cudaMemcpyDeviceToHost);
}

__global__ void named_barriers(int *out) {
    __shared__ int s[64];
    int t = threadIdx.x, half = t / 64, i = t % 64;
    __shared__ int u[64];
    int *mine = half ? u : s;
    mine[i] = t;
    if (half) asm volatile("bar.sync 2, 64;" ::: "memory");
    else asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = mine[63 - i];
}
PROGRAM(a_barrier_for_each_half) { named_barriers<<<1, 128>>>(fresh<int>(128)); }

// Three stages of asynchronous copies; a thread reads its own bytes behind its wait alone, and others' behind a barrier.
__global__ void pipelined(const float4 *in, float *out, int tiles) {
    __shared__ float4 s[3][64];
    int t = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 2; k++) {
        if (k < tiles) __pipeline_memcpy_async(&s[k][t], &in[k * 64 + t], 16);
        __pipeline_commit();
    }
    for (int k = 0; k < tiles; k++) {
        __pipeline_wait_prior(1);
        sum += s[k % 3][t].x;
        __syncthreads();
        sum += s[k % 3][63 - t].y;
        if (k + 2 < tiles) __pipeline_memcpy_async(&s[(k + 2) % 3][t], &in[(k + 2) * 64 + t], 16, t == 5 ? 4 : 0);
        __pipeline_commit();
    }
    out[blockIdx.x * 64 + t] = sum;
}
PROGRAM(pipelined_asynchronous_copies) { pipelined<<<2, 64>>>(filled<float4>(320), fresh<float>(128), 5); }

__global__ void each_warp_for_itself(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t % 32 < 24) __pipeline_memcpy_async(&s[t], &in[t], 4);
    else s[t] = t;
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
    out[t] = s[t ^ 31];
}
PROGRAM(asynchronous_copies_within_a_warp) { each_warp_for_itself<<<1, 64>>>(filled<int>(64), fresh<int>(64)); }
