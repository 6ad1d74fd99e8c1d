// Attention kernels whose warps race for a tile or for a row's statistics. On a GPU, where warps run nearly in step, most
// give the right result most of the time. A line of the race says which program it belongs to: `// RACE name`.
#include <cuda_pipeline.h>

#include "../seeded/seeded.h"

constexpr int D = 16, TILE = 32, TILES = 3;

// One thread a row; K and V go through shared memory, a tile at a time.
__global__ void tile_of_v(const float *k, const float *v, float *o) {
    __shared__ float kj[TILE * D], vj[TILE * D];
    const int t = threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < TILES; tile++) {
        for (int i = t; i < TILE * D; i += blockDim.x) {
            kj[i] = k[tile * TILE * D + i];
            vj[i] = v[tile * TILE * D + i]; // RACE v_tile_overwritten
        }
        __syncthreads();
        float score = 0;
        for (int x = 0; x < D; x++) score += kj[(t % TILE) * D + x];
        __syncthreads();
        for (int key = 0; key < TILE; key++) sum += score * vj[key * D + t % D]; // RACE v_tile_overwritten
    }
    o[t] = sum;
}
PROGRAM(v_tile_overwritten) { tile_of_v<<<2, 128>>>(filled<float>(1536), filled<float>(1536, 1), filled<float>(128)); }

__global__ void no_barrier_behind_the_load(const float *k, float *o) {
    __shared__ float Kj[TILE][D];
    const int tx = threadIdx.x, ty = threadIdx.y;
    float sum = 0;
    for (int tile = 0; tile < TILES; tile++) {
        Kj[ty][tx] = k[(tile * TILE + ty) * D + tx]; // RACE k_tile_read_too_early
        for (int key = 0; key < TILE; key++) sum += Kj[key][tx]; // RACE k_tile_read_too_early
        __syncthreads();
    }
    o[ty * D + tx] = sum;
}
PROGRAM(k_tile_read_too_early) {
    no_barrier_behind_the_load<<<1, dim3(D, TILE)>>>(filled<float>(1536, 1), filled<float>(TILE * D));
}

// The barrier that the diagonal's tile needs is there, the other tiles' is not.
__global__ void barrier_on_the_diagonal(const float *k, float *o) {
    __shared__ float tile_k[TILE * D];
    const int t = threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < TILES; tile++) {
        for (int i = t; i < TILE * D; i += blockDim.x) tile_k[i] = k[tile * TILE * D + i]; // RACE barrier_in_one_branch
        if (tile == blockIdx.x) __syncthreads();
        sum += tile_k[511 - t]; // RACE barrier_in_one_branch
        __syncthreads();
    }
    o[blockIdx.x * blockDim.x + t] = sum;
}
PROGRAM(barrier_in_one_branch) { barrier_on_the_diagonal<<<2, 128>>>(filled<float>(1536, 1), filled<float>(256)); }

// Scores in shared memory, a row's maximum and sum kept by one thread for the whole row.
struct Row {
    float m, l;
};
__global__ void statistics_read_too_early(const float *scores, float *o) {
    __shared__ float s[64][8], l[64];
    const int row = threadIdx.x % 64, part = threadIdx.x / 64;
    for (int c = part; c < 8; c += 2) s[row][c] = scores[row * 8 + c];
    __syncthreads();
    if (part == 0) {
        float total = 0;
        for (int c = 0; c < 8; c++) total += expf(s[row][c]);
        l[row] = total; // RACE l_read_too_early
    }
    for (int c = part; c < 8; c += 2) o[row * 8 + c] = expf(s[row][c]) / l[row]; // RACE l_read_too_early
}
PROGRAM(l_read_too_early) { statistics_read_too_early<<<1, 128>>>(filled<float>(512, 1), filled<float>(512)); }

__global__ void statistics_overwritten(const float *scores, float *o) {
    __shared__ Row rows[64];
    const int row = threadIdx.x & 63, half = threadIdx.x >> 6;
    float sum = 0;
    if (half == 0) rows[row] = {-1e30f, 0};
    __syncthreads();
    for (int j = 0; j < 4; j++) {
        const float top = fmaxf(rows[row].m, scores[j * 64 + row]); // RACE m_overwritten_while_read
        sum = sum * 0.5f + top;
        if (half == 0) rows[row].m = top + 1; // RACE m_overwritten_while_read
        __syncthreads();
    }
    o[threadIdx.x] = sum;
}
PROGRAM(m_overwritten_while_read) { statistics_overwritten<<<1, 128>>>(filled<float>(256, 1), filled<float>(128)); }

// The next tile is loaded while this one is used, into the buffer of this one.
__global__ void wrong_buffer(const float *k, float *o) {
    __shared__ float stage[2][128];
    const int t = threadIdx.x;
    float sum = 0;
    stage[0][t] = k[t];
    __syncthreads();
    for (int tile = 0; tile < 4; tile++) {
        if (tile < 3) stage[tile & 1][t] = k[(tile + 1) * 128 + t] + tile; // RACE double_buffer_index
        for (int i = 0; i < 128; i++) sum += stage[tile & 1][i]; // RACE double_buffer_index
        __syncthreads();
    }
    o[t] = sum;
}
PROGRAM(double_buffer_index) { wrong_buffer<<<1, 128>>>(filled<float>(512, 1), filled<float>(128)); }

__global__ void no_wait(const float4 *k, float *o) {
    __shared__ float4 kv[64];
    __pipeline_memcpy_async(&kv[threadIdx.x], &k[threadIdx.x], 16); // RACE copy_without_wait
    __pipeline_commit();
    __syncthreads();
    o[threadIdx.x] = kv[63 - threadIdx.x].x; // RACE copy_without_wait
}
PROGRAM(copy_without_wait) { no_wait<<<1, 64>>>(filled<float4>(64, 1), filled<float>(64)); }

__global__ void wait_alone(const float4 *k, float *o) {
    __shared__ float4 kv[64];
    __pipeline_memcpy_async(&kv[threadIdx.x], &k[threadIdx.x], 16); // RACE copy_without_barrier
    __pipeline_commit();
    __pipeline_wait_prior(0); // RACE copy_without_barrier
    o[threadIdx.x] = kv[63 - threadIdx.x].x; // RACE copy_without_barrier
}
PROGRAM(copy_without_barrier) { wait_alone<<<1, 64>>>(filled<float4>(64, 1), filled<float>(64)); }

__global__ void copied_over(const float4 *k, float *o) {
    __shared__ float4 ring[2][64];
    const int t = threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < 4; tile++) {
        __pipeline_memcpy_async(&ring[tile % 2][t], &k[tile * 64 + t], 16); // RACE ring_slot_reused
        __pipeline_commit();
        __pipeline_wait_prior(0); // RACE ring_slot_reused
        if (tile < 2) __syncthreads();
        sum += ring[tile % 2][63 - t].x; // RACE ring_slot_reused
    }
    o[t] = sum;
}
PROGRAM(ring_slot_reused) { copied_over<<<1, 64>>>(filled<float4>(256, 1), filled<float>(64)); }

// P = softmax(S) is written by rows and read by columns.
template <int ROWS>
__global__ void probabilities(const float *s, const float *v, float *o) {
    __shared__ float p[ROWS][33];
    const int lane = threadIdx.x, row = threadIdx.y;
    p[row][lane] = expf(s[row * 32 + lane]); // RACE p_used_without_barrier
    float sum = 0;
    for (int r = 0; r < ROWS; r++) sum += p[r][lane] * v[r]; // RACE p_used_without_barrier
    o[row * 32 + lane] = sum;
}
PROGRAM(p_used_without_barrier) {
    probabilities<4><<<1, dim3(32, 4)>>>(filled<float>(128, 1), filled<float>(4, 1), filled<float>(128));
}

// Q, K and V are parts of one dynamic array. The result is staged where K was.
__global__ void staged_over_k(const float *in, float *out, int n) {
    extern __shared__ float smem[];
    float *q = smem, *k = q + n, *stage = k;
    const int t = threadIdx.x;
    q[t] = in[t];
    k[t] = in[n + t];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < n; i++) sum += q[t] * k[i]; // RACE staged_over_a_tile
    stage[t] = sum; // RACE staged_over_a_tile
    __syncthreads();
    out[t] = stage[n - 1 - t];
}
PROGRAM(staged_over_a_tile) { staged_over_k<<<1, 96, 192 * 4>>>(filled<float>(192, 1), filled<float>(96), 96); }

// The barrier is in the helper, behind its early return.
__device__ void load_tile(float *tile, const float *from, int first, int n) {
    if (first >= n) return;
    tile[threadIdx.x] = from[first + threadIdx.x]; // RACE barrier_behind_an_early_return
    __syncthreads();
}
__global__ void early_return(const float *k, float *o, int n) {
    __shared__ float tile[64];
    float sum = 0;
    for (int first = 0; first < n; first += 64) {
        load_tile(tile, k, first, n);
        sum += tile[63 - threadIdx.x]; // RACE barrier_behind_an_early_return
        load_tile(tile, k, first + 1000, n);
    }
    o[threadIdx.x] = sum;
}
PROGRAM(barrier_behind_an_early_return) { early_return<<<1, 64>>>(filled<float>(192, 1), filled<float>(64), 192); }

// One warp loads the row of Q for all.
__global__ void one_warp_loads(const float *q, float *o) {
    __shared__ float qi[32];
    if (threadIdx.x / 32 == 3) qi[threadIdx.x % 32] = q[threadIdx.x % 32]; // RACE one_warp_loads_for_all
    __syncwarp();
    float sum = 0;
    for (int x = 0; x < 32; x++) sum += qi[x]; // RACE one_warp_loads_for_all
    o[threadIdx.x] = sum;
}
PROGRAM(one_warp_loads_for_all) { one_warp_loads<<<1, 128>>>(filled<float>(32, 1), filled<float>(128)); }
