// Attention forward in the styles that students write, for calibrating predicted times. STYLE chooses the kernel, and
// TILE, THREADS, PAD, VECTOR choose how well it is made. All are right; most are slow on purpose.
//
// Theory of operation
//
//   1  a thread per row; tiles of K and V in shared memory, q and o in registers
//   2  a thread per row; K and V straight from global memory, VECTOR floats a load
//   3  a warp per row; lane x holds columns x, x + 32; a shuffle reduction for every key
//   4  32 x 32 threads; scores in shared memory, o in a register of each thread, columns of D in turns; rows of
//      D + PAD floats
//   5  16 x 16 threads, each 4 x 4 scores of a 64 x 64 tile; rows of D + PAD floats
//   6  three kernels a batch: S = Q K^T and O = P V by 16 x 16 tiles, a softmax by a block per row
//   7  a thread per row with the scores of a tile in a local array, two passes over the tile
//   8  a block per row: threads share the keys, partial results meet in shared memory
//   9  as 6 for S and P V, but straight from global memory, all batches in one launch
//
// Build: nvcc -O3 -std=c++17 -DSTYLE=1 -DTILE=32 attention_styles.cu -o hw4

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "attention_main.cuh"


#ifndef STYLE
#define STYLE 1
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef PAD
#define PAD 0
#endif
#ifndef VECTOR
#define VECTOR 1
#endif

// Q, K, V of batch b in the input file's order.
struct Batch {
    const float *q, *k, *v;
    float* o;
};

template <int D>
__device__ Batch batch_of(const float* input, float* output, int n, int b) {
    const size_t size = size_t(n) * D;
    return {input + b * 3 * size, input + (b * 3 + 1) * size, input + (b * 3 + 2) * size, output + b * size};
}

#if STYLE == 1
template <int D>
__global__ void attention(const float* input, float* output, int n, float scale) {
    __shared__ float k_tile[TILE][D], v_tile[TILE][D];
    const Batch batch = batch_of<D>(input, output, n, blockIdx.y);
    const int row = blockIdx.x * THREADS + threadIdx.x;
    float q[D], o[D], m = -FLT_MAX, l = 0.0f;
    for (int x = 0; x < D; ++x) {
        q[x] = batch.q[size_t(row) * D + x];
        o[x] = 0.0f;
    }
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * D; i += THREADS) {
            k_tile[i / D][i % D] = batch.k[size_t(first) * D + i];
            v_tile[i / D][i % D] = batch.v[size_t(first) * D + i];
        }
        __syncthreads();
        for (int key = 0; key < TILE; ++key) {
            float s = 0.0f;
#pragma unroll
            for (int x = 0; x < D; ++x) s += q[x] * k_tile[key][x];
            s *= scale;
            const float top = fmaxf(m, s), fade = expf(m - top), p = expf(s - top);
            l = l * fade + p;
#pragma unroll
            for (int x = 0; x < D; ++x) o[x] = o[x] * fade + p * v_tile[key][x];
            m = top;
        }
    }
    for (int x = 0; x < D; ++x) batch.o[size_t(row) * D + x] = o[x] / l;
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    attention<D><<<dim3(n / THREADS, batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 2
template <int D>
__global__ void attention(const float* __restrict__ input, float* __restrict__ output, int n, float scale) {
    const Batch batch = batch_of<D>(input, output, n, blockIdx.y);
    const int row = blockIdx.x * THREADS + threadIdx.x;
    float q[D], o[D], m = -FLT_MAX, l = 0.0f;
    for (int x = 0; x < D; ++x) {
        q[x] = batch.q[size_t(row) * D + x];
        o[x] = 0.0f;
    }
    for (int key = 0; key < n; ++key) {
        float s = 0.0f;
#if VECTOR == 4
        const float4 *const k = reinterpret_cast<const float4*>(batch.k + size_t(key) * D),
                     *const v = reinterpret_cast<const float4*>(batch.v + size_t(key) * D);
#pragma unroll
        for (int x = 0; x < D / 4; ++x) {
            const float4 part = k[x];
            s += q[4 * x] * part.x + q[4 * x + 1] * part.y + q[4 * x + 2] * part.z + q[4 * x + 3] * part.w;
        }
#else
        const float *const k = batch.k + size_t(key) * D, *const v = batch.v + size_t(key) * D;
#pragma unroll
        for (int x = 0; x < D; ++x) s += q[x] * k[x];
#endif
        s *= scale;
        const float top = fmaxf(m, s), fade = expf(m - top), p = expf(s - top);
        l = l * fade + p;
#if VECTOR == 4
#pragma unroll
        for (int x = 0; x < D / 4; ++x) {
            const float4 part = v[x];
            o[4 * x] = o[4 * x] * fade + p * part.x;
            o[4 * x + 1] = o[4 * x + 1] * fade + p * part.y;
            o[4 * x + 2] = o[4 * x + 2] * fade + p * part.z;
            o[4 * x + 3] = o[4 * x + 3] * fade + p * part.w;
        }
#else
#pragma unroll
        for (int x = 0; x < D; ++x) o[x] = o[x] * fade + p * v[x];
#endif
        m = top;
    }
    for (int x = 0; x < D; ++x) batch.o[size_t(row) * D + x] = o[x] / l;
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    attention<D><<<dim3(n / THREADS, batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 3
template <int D>
__global__ void attention(const float* input, float* output, int n, float scale) {
    const Batch batch = batch_of<D>(input, output, n, blockIdx.y);
    const int lane = threadIdx.x % 32, row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    float q[D / 32], o[D / 32] = {}, m = -FLT_MAX, l = 0.0f;
    for (int x = 0; x < D / 32; ++x) q[x] = batch.q[size_t(row) * D + 32 * x + lane];
    for (int key = 0; key < n; ++key) {
        float s = 0.0f;
        for (int x = 0; x < D / 32; ++x) s += q[x] * batch.k[size_t(key) * D + 32 * x + lane];
        for (int step = 16; step > 0; step /= 2) s += __shfl_xor_sync(~0u, s, step);
        s *= scale;
        const float top = fmaxf(m, s), fade = __expf(m - top), p = __expf(s - top);
        l = l * fade + p;
        for (int x = 0; x < D / 32; ++x) o[x] = o[x] * fade + p * batch.v[size_t(key) * D + 32 * x + lane];
        m = top;
    }
    for (int x = 0; x < D / 32; ++x) batch.o[size_t(row) * D + 32 * x + lane] = o[x] / l;
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    attention<D><<<dim3(n / (THREADS / 32), batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 4
template <int D>
__global__ void attention(const float* input, float* output, int n, float scale) {
    __shared__ float q_tile[32][D + PAD], k_tile[32][D + PAD], v_tile[32][D + PAD], s_tile[32][33], m_row[32], l_row[32], fade[32];
    const Batch batch = batch_of<D>(input, output, n, blockIdx.y);
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.x * 32;
    float o[D / 32] = {};
    for (int c = x; c < D; c += 32) q_tile[y][c] = batch.q[size_t(row + y) * D + c];
    if (x == 0) m_row[y] = -FLT_MAX, l_row[y] = 0.0f;
    for (int first = 0; first < n; first += 32) {
        for (int c = x; c < D; c += 32) {
            k_tile[y][c] = batch.k[size_t(first + y) * D + c];
            v_tile[y][c] = batch.v[size_t(first + y) * D + c];
        }
        __syncthreads();
        float s = 0.0f;
        for (int c = 0; c < D; ++c) s += q_tile[y][c] * k_tile[x][c];
        s_tile[y][x] = s * scale;
        __syncthreads();
        if (x == 0) {    // one thread a row, as many write it first
            float top = m_row[y], sum = 0.0f;
            for (int j = 0; j < 32; ++j) top = fmaxf(top, s_tile[y][j]);
            for (int j = 0; j < 32; ++j) {
                s_tile[y][j] = expf(s_tile[y][j] - top);
                sum += s_tile[y][j];
            }
            fade[y] = expf(m_row[y] - top);
            l_row[y] = l_row[y] * fade[y] + sum;
            m_row[y] = top;
        }
        __syncthreads();
        for (int c = 0; c < D / 32; ++c) {
            float sum = 0.0f;
            for (int j = 0; j < 32; ++j) sum += s_tile[y][j] * v_tile[j][32 * c + x];
            o[c] = o[c] * fade[y] + sum;
        }
        __syncthreads();
    }
    for (int c = 0; c < D / 32; ++c) batch.o[size_t(row + y) * D + 32 * c + x] = o[c] / l_row[y];
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    attention<D><<<dim3(n / 32, batches), dim3(32, 32)>>>(input, output, n, scale);
}
#elif STYLE == 5
template <int D>
__global__ void __launch_bounds__(256) attention(const float* input, float* output, int n, float scale) {
    extern __shared__ float shared[];
    float(*const q_tile)[D + PAD] = reinterpret_cast<float(*)[D + PAD]>(shared);
    float(*const k_tile)[D + PAD] = q_tile + 64;
    float(*const v_tile)[D + PAD] = k_tile + 64;
    float(*const p_tile)[65] = reinterpret_cast<float(*)[65]>(v_tile + 64);
    const Batch batch = batch_of<D>(input, output, n, blockIdx.y);
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    const size_t row = size_t(blockIdx.x) * 64;
    float o[4][D / 16] = {}, m[4], l[4] = {};
    for (int i = 0; i < 4; ++i) m[i] = -FLT_MAX;
    for (int i = threadIdx.x; i < 64 * D; i += 256) q_tile[i / D][i % D] = batch.q[row * D + i] * scale;
    for (int first = 0; first < n; first += 64) {
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * D; i += 256) {
            k_tile[i / D][i % D] = batch.k[size_t(first) * D + i];
            v_tile[i / D][i % D] = batch.v[size_t(first) * D + i];
        }
        __syncthreads();
        float s[4][4] = {};
        for (int c = 0; c < D; ++c) {
            float a[4], b[4];
            for (int i = 0; i < 4; ++i) a[i] = q_tile[y * 4 + i][c], b[i] = k_tile[x + 16 * i][c];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) s[i][j] += a[i] * b[j];
        }
        for (int i = 0; i < 4; ++i) {
            float top = fmaxf(fmaxf(s[i][0], s[i][1]), fmaxf(s[i][2], s[i][3])), sum = 0.0f;
            for (int step = 8; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
            top = fmaxf(top, m[i]);
            for (int j = 0; j < 4; ++j) {
                s[i][j] = __expf(s[i][j] - top);
                sum += s[i][j];
                p_tile[y * 4 + i][x + 16 * j] = s[i][j];
            }
            for (int step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
            const float fade = __expf(m[i] - top);
            l[i] = l[i] * fade + sum;
            m[i] = top;
            for (int c = 0; c < D / 16; ++c) o[i][c] *= fade;
        }
        __syncthreads();
        for (int j = 0; j < 64; ++j) {
            float b[D / 16];
            for (int c = 0; c < D / 16; ++c) b[c] = v_tile[j][x + 16 * c];
            for (int i = 0; i < 4; ++i)
                for (int c = 0; c < D / 16; ++c) o[i][c] += p_tile[y * 4 + i][j] * b[c];
        }
    }
    for (int i = 0; i < 4; ++i)
        for (int c = 0; c < D / 16; ++c) batch.o[(row + y * 4 + i) * D + x + 16 * c] = o[i][c] / l[i];
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    const int bytes = (3 * 64 * (D + PAD) + 64 * 65) * int(sizeof(float));
    CHECK(cudaFuncSetAttribute(attention<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    attention<D><<<dim3(n / 64, batches), 256, bytes>>>(input, output, n, scale);
}
#elif STYLE == 6
// c[i][j] = scale * sum over x of a[i][x] * b[j][x] (TRANSPOSED) or b[x][j].
template <bool TRANSPOSED>
__global__ void product(const float* a, const float* b, float* c, int columns, int inner, float scale) {
    __shared__ float a_tile[16][16], b_tile[16][16 + PAD];
    const int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int first = 0; first < inner; first += 16) {
        a_tile[y][x] = a[size_t(i) * inner + first + x];
        if (TRANSPOSED) b_tile[y][x] = b[size_t(blockIdx.x * 16 + y) * inner + first + x];
        else b_tile[y][x] = b[size_t(first + y) * columns + j];
        __syncthreads();
        for (int t = 0; t < 16; ++t) sum += a_tile[y][t] * (TRANSPOSED ? b_tile[x][t] : b_tile[t][x]);
        __syncthreads();
    }
    c[size_t(i) * columns + j] = sum * scale;
}
__global__ void softmax(float* s, int n) {
    __shared__ float part[THREADS];
    float* const row = s + size_t(blockIdx.x) * n;
    float top = -FLT_MAX, sum = 0.0f;
    for (int j = threadIdx.x; j < n; j += THREADS) top = fmaxf(top, row[j]);
    part[threadIdx.x] = top;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + step]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += THREADS) sum += row[j] = expf(row[j] - top);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    for (int j = threadIdx.x; j < n; j += THREADS) row[j] /= part[0];
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    float* s;
    CHECK(cudaMalloc(&s, sizeof(float) * n * n));
    for (int b = 0; b < batches; ++b) {
        const float* const q = input + size_t(b) * 3 * n * D;
        product<true><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(q, q + size_t(n) * D, s, n, D, scale);
        softmax<<<n, THREADS>>>(s, n);
        product<false><<<dim3(D / 16, n / 16), dim3(16, 16)>>>(s, q + size_t(n) * D * 2, output + size_t(b) * n * D, D, n, 1.0f);
    }
}
#elif STYLE == 7
template <int D>
__global__ void attention(const float* input, float* output, int n, float scale) {
    __shared__ float k_tile[TILE][D], v_tile[TILE][D];
    const Batch batch = batch_of<D>(input, output, n, blockIdx.y);
    const int row = blockIdx.x * THREADS + threadIdx.x;
    float o[D], s[TILE], m = -FLT_MAX, l = 0.0f;
    for (int x = 0; x < D; ++x) o[x] = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * D; i += THREADS) {
            k_tile[i / D][i % D] = batch.k[size_t(first) * D + i];
            v_tile[i / D][i % D] = batch.v[size_t(first) * D + i];
        }
        __syncthreads();
        float top = m;
        for (int key = 0; key < TILE; ++key) {
            s[key] = 0.0f;
            for (int x = 0; x < D; ++x) s[key] += batch.q[size_t(row) * D + x] * k_tile[key][x];
            s[key] *= scale;
            top = fmaxf(top, s[key]);
        }
        const float fade = expf(m - top);
        l *= fade;
        for (int x = 0; x < D; ++x) o[x] *= fade;
        for (int key = 0; key < TILE; ++key) {
            const float p = expf(s[key] - top);
            l += p;
            for (int x = 0; x < D; ++x) o[x] += p * v_tile[key][x];
        }
        m = top;
    }
    for (int x = 0; x < D; ++x) batch.o[size_t(row) * D + x] = o[x] / l;
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    attention<D><<<dim3(n / THREADS, batches), THREADS>>>(input, output, n, scale);
}
#elif STYLE == 8
template <int D>
__global__ void attention(const float* input, float* output, int n, float scale) {
    __shared__ float q[D], part[THREADS], sums[THREADS / 32][D];
    extern __shared__ float s[];
    const Batch batch = batch_of<D>(input, output, n, blockIdx.y);
    const int row = blockIdx.x, thread = threadIdx.x;
    if (thread < D) q[thread] = batch.q[size_t(row) * D + thread];
    __syncthreads();
    float top = -FLT_MAX, l = 0.0f;
    for (int key = thread; key < n; key += THREADS) {
        float sum = 0.0f;
        for (int x = 0; x < D; ++x) sum += q[x] * batch.k[size_t(key) * D + x];
        s[key] = sum * scale;
        top = fmaxf(top, s[key]);
    }
    part[thread] = top;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (thread < step) part[thread] = fmaxf(part[thread], part[thread + step]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();
    for (int key = thread; key < n; key += THREADS) l += s[key] = expf(s[key] - top);
    part[thread] = l;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (thread < step) part[thread] += part[thread + step];
        __syncthreads();
    }
    const int lane = thread % 32, warp = thread / 32;
    for (int c = lane; c < D; c += 32) {
        float sum = 0.0f;
        for (int key = warp; key < n; key += THREADS / 32) sum += s[key] * batch.v[size_t(key) * D + c];
        sums[warp][c] = sum;
    }
    __syncthreads();
    if (thread < D) {
        float sum = 0.0f;
        for (int w = 0; w < THREADS / 32; ++w) sum += sums[w][thread];
        batch.o[size_t(row) * D + thread] = sum / part[0];
    }
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    const int bytes = n * int(sizeof(float));
    CHECK(cudaFuncSetAttribute(attention<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    attention<D><<<dim3(n, batches), THREADS, bytes>>>(input, output, n, scale);
}
#elif STYLE == 9
template <int D>
__global__ void scores(const float* input, float* s, int n, int first, float scale) {
    const size_t size = size_t(n) * D;
    const float *const q = input + (first + blockIdx.z) * 3 * size, *const k = q + size;
    const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int x = 0; x < D; ++x) sum += q[size_t(i) * D + x] * k[size_t(j) * D + x];
    s[(size_t(blockIdx.z) * n + i) * n + j] = sum * scale;
}
__global__ void softmax(float* s, int n) {    // a thread per row
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    float top = -FLT_MAX, sum = 0.0f;
    for (int j = 0; j < n; ++j) top = fmaxf(top, s[i * n + j]);
    for (int j = 0; j < n; ++j) sum += s[i * n + j] = expf(s[i * n + j] - top);
    for (int j = 0; j < n; ++j) s[i * n + j] /= sum;
}
template <int D>
__global__ void outputs(const float* input, const float* s, float* o, int n, int first) {
    const size_t size = size_t(n) * D;
    const float* const v = input + ((first + blockIdx.z) * 3 + 2) * size;
    const int i = blockIdx.y * blockDim.y + threadIdx.y, c = threadIdx.x;
    float sum = 0.0f;
    for (int j = 0; j < n; ++j) sum += s[(size_t(blockIdx.z) * n + i) * n + j] * v[size_t(j) * D + c];
    o[(first + blockIdx.z) * size + size_t(i) * D + c] = sum;
}
template <int D>
void run(const float* input, float* output, int batches, int n, float scale) {
    const int together = std::max(1, std::min(batches, (1 << 28) / (n * n)));
    float* s;
    CHECK(cudaMalloc(&s, sizeof(float) * n * n * together));
    for (int b = 0; b < batches; b += together) {
        const int now = std::min(together, batches - b);
        scores<D><<<dim3(n / 32, n / 8, now), dim3(32, 8)>>>(input, s, n, b, scale);
        softmax<<<size_t(now) * n / THREADS, THREADS>>>(s, n);
        outputs<D><<<dim3(1, n / 8, now), dim3(D, 8)>>>(input, s, output, n, b);
    }
}
#endif

extern "C" void solve(const float* input, float* output, int batches, int n, int d) {
    if (d == 32) run<32>(input, output, batches, n, 1.0f / std::sqrt(float(d)));
    else run<64>(input, output, batches, n, 1.0f / std::sqrt(float(d)));
}
