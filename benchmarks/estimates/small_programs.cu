// Versions of the small assignments for measuring how far predicted times are off: as students write them first, or slow on
// purpose. PROGRAM chooses one. Those of matmul and softmax have a main of their own, since these assignments are programs.
//
// Build: nvcc -O3 -std=c++17 -DPROGRAM=matmul_blocked -DA_matmul small_programs.cu

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

enum {
    saxpy_chunks = 1, saxpy_strided, saxpy_launches, saxpy_double, saxpy_offset,
    reduction_interleaved, reduction_atomics, reduction_shared_atomics, reduction_two_kernels,
    histogram_shared, histogram_columns,
    transpose_unpadded, transpose_read_columns, transpose_wide,
    grayscale_columns, grayscale_shared,
    convolution_constant, convolution_columns, convolution_rows,
    stencil_columns, stencil_cubes, stencil_tile,
    scan_tree, scan_tree_padded, scan_thread,
    cross_entropy_threads, cross_entropy_warps,
    spmv_warps, sort_bitonic,
    matmul_columns, matmul_rows, matmul_tile16, matmul_tile16_extra, matmul_conflicts, matmul_padded, matmul_blocked, matmul_blocked4, matmul_double,
    softmax_threads, softmax_warps, softmax_registers
};

[[maybe_unused]] __device__ static float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}
[[maybe_unused]] __device__ static float warp_max(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

// ---- saxpy

#ifdef A_saxpy
__global__ void saxpy_chunk_kernel(const float* x, const float* y, float* z, int n, float a, int chunk) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * chunk;
    for (int i = first; i < first + chunk && i < n; i++) z[i] = a * x[i] + y[i];
}
__global__ void saxpy_strided_kernel(const float* x, const float* y, float* z, int n, float a) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) z[i] = a * x[i] + y[i];
}
__global__ void saxpy_double_kernel(const float* x, const float* y, float* z, int n, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double sum = 0.0;
        for (int k = 0; k < 64; k++) sum = sum * 0.5 + double(a) * x[i];
        z[i] = float(sum / 2.0 + y[i]);
    }
}
__global__ void saxpy_offset_kernel(const float* x, const float* y, float* z, int n, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x - 3;
    if (i >= 0 && i < n) z[i] = a * x[i] + y[i];
}
static void saxpy(const float* X, const float* Y, float* Z, int n, float a) {
    if (PROGRAM == saxpy_chunks) saxpy_chunk_kernel<<<(n / 32 + 255) / 256 + 1, 256>>>(X, Y, Z, n, a, 32);
    else if (PROGRAM == saxpy_strided) saxpy_strided_kernel<<<(n / 32 + 255) / 256 + 1, 256>>>(X, Y, Z, n, a);
    else if (PROGRAM == saxpy_double) saxpy_double_kernel<<<(n + 255) / 256, 256>>>(X, Y, Z, n, a);
    else if (PROGRAM == saxpy_offset) saxpy_offset_kernel<<<(n + 3 + 255) / 256, 256>>>(X, Y, Z, n, a);
    else
        for (int i = 0; i < n; i += 65536)
            saxpy_strided_kernel<<<256, 256>>>(X + i, Y + i, Z + i, n - i < 65536 ? n - i : 65536, a);
}
#endif

// ---- reduction

#ifdef A_reduction
__global__ void interleaved(const float* x, float* s, int n) {
    __shared__ float part[256];
    const int i = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    for (int step = 1; step < 256; step *= 2) {
        __syncthreads();
        const int at = 2 * step * threadIdx.x;
        if (at < 256) part[at] += part[at + step];
    }
    if (threadIdx.x == 0) atomicAdd(s, part[0]);
}
__global__ void all_atomics(const float* x, float* s, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(s + i % 32 * 0, x[i]);
}
__global__ void shared_atomics(const float* x, float* s, int n) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0.0f;
    __syncthreads();
    float mine = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
    atomicAdd(&sum, mine);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(s, sum);
}
__global__ void sums_of_blocks(const float* x, float* part, int n) {
    __shared__ float shared[8];
    float mine = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
    mine = warp_sum(mine);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; w++) mine += shared[w];
        part[blockIdx.x] = mine;
    }
}
static void reduction(const float* X, float* S, int n) {
    cudaMemsetAsync(S, 0, sizeof(float));
    if (PROGRAM == reduction_interleaved) interleaved<<<(n + 255) / 256, 256>>>(X, S, n);
    else if (PROGRAM == reduction_atomics) all_atomics<<<(n + 255) / 256, 256>>>(X, S, n);
    else if (PROGRAM == reduction_shared_atomics) shared_atomics<<<1056, 256>>>(X, S, n);
    else {
        static float* part = nullptr;
        if (!part) cudaMalloc(&part, 4096);
        sums_of_blocks<<<1024, 256>>>(X, part, n);
        sums_of_blocks<<<1, 256>>>(part, S, 1024);
    }
}
#endif

// ---- histogram

#ifdef A_histogram
__global__ void histogram_kernel(const unsigned char* x, int* h, int n) {
    __shared__ int bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    if (PROGRAM == histogram_shared)
        for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&bins[x[i]], 1);
    else {
        const int each = (n + gridDim.x * 256 - 1) / (gridDim.x * 256), first = (blockIdx.x * 256 + threadIdx.x) * each;
        for (int i = first; i < first + each && i < n; i++) atomicAdd(&bins[x[i]], 1);
    }
    __syncthreads();
    atomicAdd(&h[threadIdx.x], bins[threadIdx.x]);
}
static void histogram(const unsigned char* X, int* H, int n) {
    cudaMemsetAsync(H, 0, 256 * sizeof(int));
    histogram_kernel<<<1056, 256>>>(X, H, n);
}
#endif

// ---- transpose

#ifdef A_transpose
template <int PAD, int STEP>
__global__ void transpose_tile(const float* a, float* t, int rows, int columns) {
    __shared__ float tile[32][32 + PAD];
    const int x = threadIdx.x, row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
    for (int y = threadIdx.y; y < 32; y += STEP)
        if (row0 + y < rows && column0 + x < columns) tile[y][x] = a[size_t(row0 + y) * columns + column0 + x];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += STEP)
        if (column0 + y < columns && row0 + x < rows) t[size_t(column0 + y) * rows + row0 + x] = tile[x][y];
}
__global__ void transpose_columns(const float* a, float* t, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) t[size_t(column) * rows + row] = a[size_t(row) * columns + column];
}
static void transpose(const float* A, float* T, int rows, int columns) {
    const dim3 blocks((columns + 31) / 32, (rows + 31) / 32);
    if (PROGRAM == transpose_unpadded) transpose_tile<0, 8><<<blocks, dim3(32, 8)>>>(A, T, rows, columns);
    else if (PROGRAM == transpose_wide) transpose_tile<1, 32><<<blocks, dim3(32, 32)>>>(A, T, rows, columns);
    else transpose_columns<<<dim3((rows + 31) / 32, (columns + 7) / 8), dim3(32, 8)>>>(A, T, rows, columns);
}
#endif

// ---- grayscale

#ifdef A_grayscale
__global__ void grey_columns(const unsigned char* p, unsigned char* g, int height, int width) {
    const int y = blockIdx.x * blockDim.x + threadIdx.x, x = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const unsigned char* rgb = p + 3 * (size_t(y) * width + x);
    g[size_t(y) * width + x] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8;
}
__global__ void grey_shared(const unsigned char* p, unsigned char* g, int pixels) {
    __shared__ unsigned char bytes[768];
    const size_t first = size_t(blockIdx.x) * 256;
    for (int i = threadIdx.x; i < 768; i += 256)
        if (3 * first + i < 3 * size_t(pixels)) bytes[i] = p[3 * first + i];
    __syncthreads();
    const unsigned char* rgb = bytes + 3 * threadIdx.x;
    if (first + threadIdx.x < pixels) g[first + threadIdx.x] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8;
}
static void grayscale(const unsigned char* P, unsigned char* G, int height, int width) {
    if (PROGRAM == grayscale_columns) grey_columns<<<dim3((height + 15) / 16, (width + 15) / 16), dim3(16, 16)>>>(P, G, height, width);
    else grey_shared<<<(height * width + 255) / 256, 256>>>(P, G, height * width);
}
#endif

// ---- convolution

#ifdef A_convolution
__constant__ float filter_values[225];
template <bool COLUMNS>
__global__ void filter_constant(const float* x, float* y, int rows, int columns, int k) {
    const int u = blockIdx.x * blockDim.x + threadIdx.x, w = blockIdx.y * blockDim.y + threadIdx.y;
    const int i = COLUMNS ? u : w, j = COLUMNS ? w : u;
    if (i >= rows || j >= columns) return;
    float sum = 0.0f;
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) {
            const int row = i + a - k / 2, column = j + b - k / 2;
            if (row >= 0 && row < rows && column >= 0 && column < columns) sum += filter_values[a * k + b] * x[row * columns + column];
        }
    y[i * columns + j] = sum;
}
__global__ void filter_rows(const float* x, const float* f, float* y, int rows, int columns, int k) {
    __shared__ float line[256 + 14], taps[225];
    const int j = blockIdx.x * 256 + threadIdx.x, i = blockIdx.y;
    for (int t = threadIdx.x; t < k * k; t += 256) taps[t] = f[t];
    float sum = 0.0f;
    for (int a = 0; a < k; a++) {
        const int row = i + a - k / 2;
        __syncthreads();
        for (int t = threadIdx.x; t < 256 + k - 1; t += 256) {
            const int column = blockIdx.x * 256 + t - k / 2;
            line[t] = row >= 0 && row < rows && column >= 0 && column < columns ? x[size_t(row) * columns + column] : 0.0f;
        }
        __syncthreads();
        for (int b = 0; b < k; b++) sum += taps[a * k + b] * line[threadIdx.x + b];
    }
    if (j < columns) y[size_t(i) * columns + j] = sum;
}
static void convolution(const float* X, const float* F, float* Y, int rows, int columns, int K) {
    if (PROGRAM == convolution_rows) {
        filter_rows<<<dim3((columns + 255) / 256, rows), 256>>>(X, F, Y, rows, columns, K);
        return;
    }
    cudaMemcpyToSymbolAsync(filter_values, F, K * K * sizeof(float), 0, cudaMemcpyDeviceToDevice);
    if (PROGRAM == convolution_columns) filter_constant<true><<<dim3((rows + 31) / 32, (columns + 7) / 8), dim3(32, 8)>>>(X, Y, rows, columns, K);
    else filter_constant<false><<<dim3((columns + 31) / 32, (rows + 7) / 8), dim3(32, 8)>>>(X, Y, rows, columns, K);
}
#endif

// ---- stencil3d

#ifdef A_stencil3d
template <int WAY>    // 0: threads along z, 1: cubes, 2: a tile of a plane in shared memory
__global__ void stencil_step(const float* u, float* v, int nx, int ny, int nz) {
    const int a = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.z * blockDim.z + threadIdx.z;
    const int x = WAY == 0 ? c : a, z = WAY == 0 ? a : c;
    const int plane = nx * ny, i = z * plane + y * nx + x;
    const bool is_cell = x < nx && y < ny && z < nz;
    __shared__ float tile[WAY == 2 ? 10 : 1][34];
    if (WAY == 2) {
        const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
        if (is_cell) {
            tile[ty][tx] = u[i];
            if (tx == 1 && x > 0) tile[ty][0] = u[i - 1];
            if (tx == 32 && x < nx - 1) tile[ty][33] = u[i + 1];
            if (ty == 1 && y > 0) tile[0][tx] = u[i - nx];
            if (ty == 8 && y < ny - 1) tile[9][tx] = u[i + nx];
        }
        __syncthreads();
        if (!is_cell) return;
        float value = tile[ty][tx];
        if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1)
            value += (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx] + u[i - plane] + u[i + plane] - 6.0f * value) / 8.0f;
        v[i] = value;
        return;
    }
    if (!is_cell) return;
    float value = u[i];
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1)
        value += (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + u[i - plane] + u[i + plane] - 6.0f * u[i]) / 8.0f;
    v[i] = value;
}
static void stencil3d(const float* U, float* V, int nx, int ny, int nz, int steps) {
    float* other;
    cudaMalloc(&other, size_t(nx) * ny * nz * sizeof(float));
    const float* from = U;
    for (int s = 0; s < steps; s++) {
        float* const to = (steps - s) % 2 ? V : other;
        if (PROGRAM == stencil_columns) stencil_step<0><<<dim3((nz + 31) / 32, (ny + 3) / 4, (nx + 1) / 2), dim3(32, 4, 2)>>>(from, to, nx, ny, nz);
        else if (PROGRAM == stencil_cubes) stencil_step<1><<<dim3((nx + 7) / 8, (ny + 7) / 8, (nz + 7) / 8), dim3(8, 8, 8)>>>(from, to, nx, ny, nz);
        else stencil_step<2><<<dim3((nx + 31) / 32, (ny + 7) / 8, nz), dim3(32, 8)>>>(from, to, nx, ny, nz);
        from = to;
    }
    cudaFree(other);
}
#endif

// ---- scan: an exclusive tree (Blelloch) over 1024 numbers of a block

#ifdef A_scan
template <bool PADDED>
__device__ int at_bank(int i) { return PADDED ? i + i / 32 : i; }
template <bool PADDED>
__global__ void scan_blocks(const int* x, int* y, int* sums, int n) {
    __shared__ int part[1024 + 32];
    const int t = threadIdx.x, first = blockIdx.x * 1024;
    for (int i = t; i < 1024; i += 512) part[at_bank<PADDED>(i)] = first + i < n ? x[first + i] : 0;
    int offset = 1;
    for (int d = 512; d > 0; d /= 2, offset *= 2) {
        __syncthreads();
        if (t < d) part[at_bank<PADDED>(offset * (2 * t + 2) - 1)] += part[at_bank<PADDED>(offset * (2 * t + 1) - 1)];
    }
    __syncthreads();
    if (t == 0) sums[blockIdx.x] = part[at_bank<PADDED>(1023)], part[at_bank<PADDED>(1023)] = 0;
    for (int d = 1; d < 1024; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            const int i = at_bank<PADDED>(offset * (2 * t + 1) - 1), j = at_bank<PADDED>(offset * (2 * t + 2) - 1), before = part[i];
            part[i] = part[j], part[j] += before;
        }
    }
    __syncthreads();
    for (int i = t; i < 1024; i += 512)
        if (first + i < n) y[first + i] = part[at_bank<PADDED>(i)] + x[first + i];
}
__global__ void scan_threads(const int* x, int* y, int* sums, int n) {    // 8 numbers a thread, one after the other
    __shared__ int part[128];
    const int t = threadIdx.x, first = blockIdx.x * 1024 + t * 8;
    int mine[8], sum = 0;
    for (int i = 0; i < 8; i++) mine[i] = sum += first + i < n ? x[first + i] : 0;
    part[t] = sum;
    __syncthreads();
    int before = 0;
    for (int i = 0; i < t; i++) before += part[i];
    for (int i = 0; i < 8; i++)
        if (first + i < n) y[first + i] = mine[i] + before;
    if (t == 127) sums[blockIdx.x] = before + sum;
}
__global__ void scan_sums(int* sums, int blocks) {    // one block
    __shared__ int part[1024];
    const int t = threadIdx.x, each = (blocks + 1023) / 1024;
    int sum = 0;
    for (int b = t * each; b < (t + 1) * each && b < blocks; b++) sum += sums[b];
    part[t] = sum;
    __syncthreads();
    for (int step = 1; step < 1024; step *= 2) {
        const int before = t >= step ? part[t - step] : 0;
        __syncthreads();
        part[t] += before;
        __syncthreads();
    }
    int before = part[t] - sum;
    for (int b = t * each; b < (t + 1) * each && b < blocks; b++) {
        const int own = sums[b];
        sums[b] = before, before += own;
    }
}
__global__ void scan_add(int* y, const int* sums, int n) {
    const int i = blockIdx.x * 1024 + threadIdx.x;
    if (i < n) y[i] += sums[blockIdx.x];
}
static void scan(const int* X, int* Y, int n) {
    const int blocks = (n + 1023) / 1024;
    int* sums;
    cudaMalloc(&sums, blocks * sizeof(int));
    if (PROGRAM == scan_tree) scan_blocks<false><<<blocks, 512>>>(X, Y, sums, n);
    else if (PROGRAM == scan_tree_padded) scan_blocks<true><<<blocks, 512>>>(X, Y, sums, n);
    else scan_threads<<<blocks, 128>>>(X, Y, sums, n);
    scan_sums<<<1, 1024>>>(sums, blocks);
    scan_add<<<blocks, 1024>>>(Y, sums, n);
    cudaFree(sums);
}
#endif

// ---- cross_entropy

#ifdef A_cross_entropy
__global__ void entropy_threads(const __nv_bfloat16* l, const long long* t, float* loss, __nv_bfloat16* g, int rows, int classes) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    l += size_t(row) * classes, g += size_t(row) * classes;
    float top = -INFINITY, sum = 0.0f;
    for (int j = 0; j < classes; j++) top = fmaxf(top, float(l[j]));
    for (int j = 0; j < classes; j++) sum += expf(float(l[j]) - top);
    for (int j = 0; j < classes; j++) g[j] = __float2bfloat16((expf(float(l[j]) - top) / sum - (j == t[row] ? 1.0f : 0.0f)) / rows);
    loss[row] = logf(sum) + top - float(l[t[row]]);
}
__global__ void entropy_warps(const __nv_bfloat16* l, const long long* t, float* loss, __nv_bfloat16* g, int rows, int classes) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    l += size_t(row) * classes, g += size_t(row) * classes;
    float top = -INFINITY, sum = 0.0f;
    for (int j = lane; j < classes; j += 32) {
        const float x = float(l[j]), most = fmaxf(top, x);
        sum = sum * __expf(top - most) + __expf(x - most), top = most;
    }
    const float all = warp_max(top);
    sum = warp_sum(sum * __expf(top - all));
    for (int j = lane; j < classes; j += 32) g[j] = __float2bfloat16((__expf(float(l[j]) - all) / sum - (j == t[row] ? 1.0f : 0.0f)) / rows);
    if (lane == 0) loss[row] = logf(sum) + all - float(l[t[row]]);
}
static void cross_entropy(const __nv_bfloat16* L, const long long* T, float* loss, __nv_bfloat16* dL, int rows, int classes) {
    if (PROGRAM == cross_entropy_threads) entropy_threads<<<(rows + 63) / 64, 64>>>(L, T, loss, dL, rows, classes);
    else entropy_warps<<<(rows + 7) / 8, 256>>>(L, T, loss, dL, rows, classes);
}
#endif

// ---- softmax

#ifdef A_softmax
__global__ void softmax_threads_kernel(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    x += size_t(row) * columns, y += size_t(row) * columns;
    float top = -INFINITY, sum = 0.0f;
    for (int j = 0; j < columns; j++) top = fmaxf(top, x[j]);
    for (int j = 0; j < columns; j++) sum += y[j] = expf(x[j] - top);
    for (int j = 0; j < columns; j++) y[j] /= sum;
}
__global__ void softmax_warps_kernel(const float* x, float* y, int rows, int columns) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += size_t(row) * columns, y += size_t(row) * columns;
    float top = -INFINITY, sum = 0.0f;
    for (int j = lane; j < columns; j += 32) top = fmaxf(top, x[j]);
    top = warp_max(top);
    for (int j = lane; j < columns; j += 32) sum += __expf(x[j] - top);
    sum = warp_sum(sum);
    for (int j = lane; j < columns; j += 32) y[j] = __expf(x[j] - top) / sum;
}
__global__ void softmax_registers_kernel(const float* x, float* y, int rows, int columns) {    // a block per row, up to 2048
    __shared__ float part[8], all;
    x += size_t(blockIdx.x) * columns, y += size_t(blockIdx.x) * columns;
    float mine[8], top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < 8; i++) {
        const int j = i * 256 + threadIdx.x;
        mine[i] = j < columns ? x[j] : -INFINITY, top = fmaxf(top, mine[i]);
    }
    top = warp_max(top);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < 8; w++) top = fmaxf(top, part[w]);
    for (int i = 0; i < 8; i++) sum += mine[i] = __expf(mine[i] - top);
    sum = warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        all = 0.0f;
        for (int w = 0; w < 8; w++) all += part[w];
    }
    __syncthreads();
    for (int i = 0; i < 8; i++) {
        const int j = i * 256 + threadIdx.x;
        if (j < columns) y[j] = mine[i] / all;
    }
}
static void softmax(const float* X, float* Y, int rows, int columns) {
    if (PROGRAM == softmax_threads) softmax_threads_kernel<<<(rows + 127) / 128, 128>>>(X, Y, rows, columns);
    else if (PROGRAM == softmax_warps || columns > 2048) softmax_warps_kernel<<<(rows + 7) / 8, 256>>>(X, Y, rows, columns);
    else softmax_registers_kernel<<<rows, 256>>>(X, Y, rows, columns);
}
#endif

// ---- spmv

#ifdef A_spmv
__global__ void spmv_warp(const int* p, const int* j, const float* v, const float* x, float* y, int rows) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = p[row] + lane; k < p[row + 1]; k += 32) sum += v[k] * x[j[k]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
static void spmv(const int* P, const int* J, const float* V, const float* X, float* Y, int rows, int, int) {
    spmv_warp<<<(rows + 7) / 8, 256>>>(P, J, V, X, Y, rows);
}
#endif

// ---- sort

#ifdef A_sort
__global__ void bitonic_step(int* y, int n, int half, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ half;
    if (other > i && i < n) {
        const int a = y[i], b = y[other];
        if ((a > b) == ((i & size) == 0)) y[i] = b, y[other] = a;
    }
}
__global__ void pad_copy(const int* x, int* y, int n, int padded) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < padded) y[i] = i < n ? x[i] : INT32_MAX;
}
static void sort(const int* X, int* Y, int n) {
    int padded = 1, *all;
    while (padded < n) padded *= 2;
    cudaMalloc(&all, size_t(padded) * sizeof(int));
    pad_copy<<<(padded + 255) / 256, 256>>>(X, all, n, padded);
    for (int size = 2; size <= padded; size *= 2)
        for (int half = size / 2; half > 0; half /= 2) bitonic_step<<<(padded + 255) / 256, 256>>>(all, padded, half, size);
    pad_copy<<<(n + 255) / 256, 256>>>(all, Y, n, n);
    cudaFree(all);
}
#endif

// ---- matmul: shape m, n, k: C (m, n) = A (m, k) B (k, n)

#ifdef A_matmul
template <typename Sum, bool COLUMNS>
__global__ void matmul_naive(const float* a, const float* b, float* c, int m, int n, int k) {
    const int u = blockIdx.x * blockDim.x + threadIdx.x, w = blockIdx.y * blockDim.y + threadIdx.y;
    const int i = COLUMNS ? u : w, j = COLUMNS ? w : u;
    if (i >= m || j >= n) return;
    Sum sum = 0;
    for (int t = 0; t < k; t++) sum += Sum(a[size_t(i) * k + t]) * b[size_t(t) * n + j];
    c[size_t(i) * n + j] = float(sum);
}
template <int TILE, int PAD, bool TRANSPOSED>
__global__ void matmul_tile(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE + PAD];
    const int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * TILE + y, j = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        a_tile[y][x] = i < m && first + x < k ? a[size_t(i) * k + first + x] : 0.0f;
        const float value = first + y < k && j < n ? b[size_t(first + y) * n + j] : 0.0f;
        if (TRANSPOSED) b_tile[x][y] = value;
        else b_tile[y][x] = value;
        __syncthreads();
        for (int t = 0; t < TILE; t++) sum += a_tile[y][t] * (TRANSPOSED ? b_tile[x][t] : b_tile[t][x]);
        __syncthreads();
    }
    if (i < m && j < n) c[size_t(i) * n + j] = sum;
}
template <int EACH>    // 16 x 16 threads, EACH x EACH results a thread, 16 of k at a time
__global__ void matmul_block(const float* a, const float* b, float* c, int m, int n, int k) {
    constexpr int SIDE = 16 * EACH;
    __shared__ float a_tile[16][SIDE + 4], b_tile[16][SIDE];
    const int thread = threadIdx.x, x = thread % 16, y = thread / 16, i0 = blockIdx.y * SIDE, j0 = blockIdx.x * SIDE;
    float sum[EACH][EACH] = {};
    for (int first = 0; first < k; first += 16) {
        for (int t = thread; t < 16 * SIDE; t += 256) {
            const int i = i0 + t / 16, ka = first + t % 16, kb = first + t / SIDE, j = j0 + t % SIDE;
            a_tile[t % 16][t / 16] = i < m && ka < k ? a[size_t(i) * k + ka] : 0.0f;
            b_tile[t / SIDE][t % SIDE] = kb < k && j < n ? b[size_t(kb) * n + j] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < 16; t++) {
            float u[EACH], w[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) u[e] = a_tile[t][y * EACH + e], w[e] = b_tile[t][x + 16 * e];
#pragma unroll
            for (int e = 0; e < EACH; e++)
#pragma unroll
                for (int f = 0; f < EACH; f++) sum[e][f] += u[e] * w[f];
        }
        __syncthreads();
    }
    for (int e = 0; e < EACH; e++)
        for (int f = 0; f < EACH; f++)
            if (i0 + y * EACH + e < m && j0 + x + 16 * f < n) c[size_t(i0 + y * EACH + e) * n + j0 + x + 16 * f] = sum[e][f];
}
static void matmul(const float* A, const float* B, float* C, int m, int n, int k) {
    const dim3 side16(16, 16), blocks16((n + 15) / 16, (m + 15) / 16), side32(32, 32), blocks32((n + 31) / 32, (m + 31) / 32);
    if (PROGRAM == matmul_columns) matmul_naive<float, true><<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
    else if (PROGRAM == matmul_rows) matmul_naive<float, false><<<dim3((n + 31) / 32, (m + 7) / 8), dim3(32, 8)>>>(A, B, C, m, n, k);
    else if (PROGRAM == matmul_double) matmul_naive<double, false><<<blocks16, side16>>>(A, B, C, m, n, k);
    else if (PROGRAM == matmul_tile16) matmul_tile<16, 0, false><<<blocks16, side16>>>(A, B, C, m, n, k);
    else if (PROGRAM == matmul_tile16_extra) {
        const auto kernel = matmul_tile<16, 0, false>;
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10);
        kernel<<<blocks16, side16, 100 << 10>>>(A, B, C, m, n, k);
    } else if (PROGRAM == matmul_conflicts) matmul_tile<32, 0, true><<<blocks32, side32>>>(A, B, C, m, n, k);
    else if (PROGRAM == matmul_padded) matmul_tile<32, 1, true><<<blocks32, side32>>>(A, B, C, m, n, k);
    else if (PROGRAM == matmul_blocked) matmul_block<8><<<dim3((n + 127) / 128, (m + 127) / 128), 256>>>(A, B, C, m, n, k);
    else matmul_block<4><<<dim3((n + 63) / 64, (m + 63) / 64), 256>>>(A, B, C, m, n, k);
}
#endif

// ---- what is called

extern "C" {
#if defined(A_saxpy)
void solve(const float* X, const float* Y, float* Z, int n, float a) { saxpy(X, Y, Z, n, a); }
#elif defined(A_reduction)
void solve(const float* X, float* S, int n) { reduction(X, S, n); }
#elif defined(A_histogram)
void solve(const unsigned char* X, int* H, int n) { histogram(X, H, n); }
#elif defined(A_transpose)
void solve(const float* A, float* T, int rows, int columns) { transpose(A, T, rows, columns); }
#elif defined(A_grayscale)
void solve(const unsigned char* P, unsigned char* G, int height, int width) { grayscale(P, G, height, width); }
#elif defined(A_convolution)
void solve(const float* X, const float* F, float* Y, int rows, int columns, int K) { convolution(X, F, Y, rows, columns, K); }
#elif defined(A_stencil3d)
void solve(const float* U, float* V, int nx, int ny, int nz, int steps) { stencil3d(U, V, nx, ny, nz, steps); }
#elif defined(A_scan)
void solve(const int* X, int* Y, int n) { scan(X, Y, n); }
#elif defined(A_cross_entropy)
void solve(const __nv_bfloat16* L, const long long* T, float* loss, __nv_bfloat16* dL, int rows, int classes) {
    cross_entropy(L, T, loss, dL, rows, classes);
}
#elif defined(A_spmv)
void solve(const int* P, const int* J, const float* V, const float* X, float* Y, int rows, int columns, int nonzeros) {
    spmv(P, J, V, X, Y, rows, columns, nonzeros);
}
#elif defined(A_sort)
void solve(const int* X, int* Y, int n) { sort(X, Y, n); }
#elif defined(TIMED) && defined(A_matmul)
void solve(const float* A, const float* B, float* C, int m, int n, int k) { matmul(A, B, C, m, n, k); }
#elif defined(TIMED) && defined(A_softmax)
void solve(const float* X, float* Y, int rows, int columns) { softmax(X, Y, rows, columns); }
#endif
}

#if !defined(TIMED) && (defined(A_matmul) || defined(A_softmax))
int main(int argc, char** argv) {
    if (argc != 3) return 1;
    FILE* const in = std::fopen(argv[1], "rb");
    int32_t h[3] = {};
#ifdef A_matmul
    if (!in || std::fread(h, 4, 3, in) != 3) return 1;
    const size_t first = size_t(h[0]) * h[2], second = size_t(h[2]) * h[1], count = size_t(h[0]) * h[1];
#else
    if (!in || std::fread(h, 4, 2, in) != 2) return 1;
    const size_t first = size_t(h[0]) * h[1], second = 0, count = first;
#endif
    std::vector<float> values(first + second), result(count);
    if (std::fread(values.data(), 4, first + second, in) != first + second) return 1;
    float *input, *output;
    cudaMalloc(&input, 4 * (first + second));
    cudaMalloc(&output, 4 * count);
    cudaMemcpy(input, values.data(), 4 * (first + second), cudaMemcpyHostToDevice);
#ifdef A_matmul
    matmul(input, input + first, output, h[0], h[1], h[2]);
#else
    softmax(input, output, h[0], h[1]);
#endif
    if (cudaMemcpy(result.data(), output, 4 * count, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    FILE* const out = std::fopen(argv[2], "wb");
    if (!out || std::fwrite(result.data(), 4, count, out) != count || std::fclose(out)) return 1;
    return 0;
}
#endif
