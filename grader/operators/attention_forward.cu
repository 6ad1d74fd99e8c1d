// The expected output of attention in float64, on the GPU.
//
// Theory of operation
//
//   This is a reference: it must be right, and fast enough, but not optimal. One block of 128 threads owns 64 query rows of
//   one batch. It walks over the keys in tiles of 32 and keeps, in float64, the running sum l and the output O of
//   its rows.
//
//   It subtracts no maximum. As in the numpy oracle (grader/operators/attention/softmax.py), the host checks that no
//   score can exceed 300 in magnitude (the testcase's largest value squared, times sqrt(d)). Then exp() and sums of any
//   legal length stay far inside float64's range, and subtracting would only cost time. Otherwise the host falls back
//   to numpy.
//
//   The tiles of Q (scaled), K and V are converted to double when they are stored in shared memory. A thread computes a
//   4 x 4 patch of scores (rows 4 r .. 4 r + 3, keys c, c + 8, c + 16, c + 24 with c = thread % 8), then a 4 x D/8
//   patch of O. Threads exchange the probabilities through shared memory.
//
//   Shared memory, in doubles: Q 64 (D + 1), K 32 (D + 1), V 32 D, P 64 x 33; for D = 64 about 83 KiB.
//
// The input is that of the file, without its header: Q, K, V of batch 0, then of batch 1, ... The output is O of batch
// 0, 1, ... in float32, rounded once. Grid: (n / 64, batches).

#ifndef D
#define D 32
#endif

constexpr int kRows = 64, kKeys = 32, kThreads = 128, kPatch = 4, kColumns = D / 8;

extern "C" __global__ void __launch_bounds__(kThreads)
attention_forward(const float* __restrict__ input, float* __restrict__ output, int n, double scale) {
    extern __shared__ double shared[];
    double* const q = shared;                         // [kRows][D + 1]
    double* const k = q + kRows * (D + 1);            // [kKeys][D + 1]
    double* const v = k + kKeys * (D + 1);            // [kKeys][D]
    double* const p = v + kKeys * D;                  // [kRows][kKeys + 1]

    const size_t matrix = size_t(n) * D;
    const float* const from = input + 3 * blockIdx.y * matrix;
    const size_t first_row = size_t(blockIdx.x) * kRows;
    const int column = threadIdx.x % 8, row = threadIdx.x / 8 * kPatch;

    for (int i = threadIdx.x; i < kRows * D; i += kThreads)
        q[i / D * (D + 1) + i % D] = double(from[first_row * D + i]) * scale;

    double sum[kPatch] = {}, out[kPatch][kColumns] = {};
    for (int first = 0; first < n; first += kKeys) {
        __syncthreads();    // no thread still reads the previous tiles
        for (int i = threadIdx.x; i < kKeys * D; i += kThreads) {
            k[i / D * (D + 1) + i % D] = double(from[matrix + size_t(first) * D + i]);
            v[i] = double(from[2 * matrix + size_t(first) * D + i]);
        }
        __syncthreads();

        double score[kPatch][kPatch] = {};
        for (int x = 0; x < D; ++x) {
            double a[kPatch], b[kPatch];
#pragma unroll
            for (int r = 0; r < kPatch; ++r) a[r] = q[(row + r) * (D + 1) + x];
#pragma unroll
            for (int c = 0; c < kPatch; ++c) b[c] = k[(column + 8 * c) * (D + 1) + x];
#pragma unroll
            for (int r = 0; r < kPatch; ++r)
#pragma unroll
                for (int c = 0; c < kPatch; ++c) score[r][c] += a[r] * b[c];
        }
#pragma unroll
        for (int r = 0; r < kPatch; ++r)
#pragma unroll
            for (int c = 0; c < kPatch; ++c) p[(row + r) * (kKeys + 1) + column + 8 * c] = exp(score[r][c]);
        __syncwarp();    // 8 threads of one warp share a row of P, and no other thread touches it

        for (int key = 0; key < kKeys; ++key) {
            double a[kPatch], b[kColumns];
#pragma unroll
            for (int r = 0; r < kPatch; ++r) a[r] = p[(row + r) * (kKeys + 1) + key];
#pragma unroll
            for (int c = 0; c < kColumns; ++c) b[c] = v[key * D + column + 8 * c];
#pragma unroll
            for (int r = 0; r < kPatch; ++r) {
                sum[r] += a[r];
#pragma unroll
                for (int c = 0; c < kColumns; ++c) out[r][c] += a[r] * b[c];
            }
        }
        __syncwarp();
    }

    float* const to = output + size_t(blockIdx.y) * matrix + (first_row + row) * D;
#pragma unroll
    for (int r = 0; r < kPatch; ++r)
#pragma unroll
        for (int c = 0; c < kColumns; ++c) to[size_t(r) * D + column + 8 * c] = float(out[r][c] / sum[r]);
}
