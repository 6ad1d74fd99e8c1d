// The float64 oracle of attention in half precision, and the plain implementation whose errors set the tolerance.
//
// Theory of operation
//
//   A block has 32 rows of a unit: a row is a query of one head of the group. Four threads share a row. Keys come in
//   tiles of 16, twice: first for the maximum and the sum of every row, then for the weights and O. Both answers are
//   computed side by side. The exact one has float64 throughout. The plain one has float32 sums and rounds to the type
//   after QK^T, after the scale, after the softmax, and at the end. A tile in which no row of the block sees a key is
//   left out.
//
//   Compiled with -DD=d. Input: for each unit Q [group * queries][D], K [keys][D], V [keys][D]. Output: O of all units,
//   then O of the plain implementation. Grid: units * ceil(group * queries / 32) blocks of 128 threads.

#include <cuda_fp16.h>

constexpr int kRows = 32, kKeys = 16, kShare = 4, kColumns = D / kShare;

__device__ float rounded(float value, int bfloat16) {
    if (!bfloat16) return __half2float(__float2half_rn(value));
    const unsigned bits = __float_as_uint(value);
    return __uint_as_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

// The score of a row and a key in both ways; -infinity if the row does not see it.
__device__ void score(int bfloat16, float scale, const float* q, const float* k, int key, int low, int high,
                      double& s, float& plain) {
    if (key < low || key >= high) {
        s = plain = -INFINITY;
        return;
    }
    s = 0.0;
    plain = 0.0f;
    for (int x = 0; x < D; ++x) {
        s += double(q[x]) * double(k[x]);
        plain += q[x] * k[x];
    }
    s *= double(scale);
    plain = rounded(rounded(plain, bfloat16) * scale, bfloat16);
}

__device__ void load(float* to, int stride, const float* from, int rows) {
    for (int i = threadIdx.x; i < rows * D; i += blockDim.x) to[i / D * stride + i % D] = from[i];
}

extern "C" __global__ void half_attention(const float* input, float* output, int group, int queries, int keys,
                                          int causal, int window, int bfloat16, float scale) {
    extern __shared__ float space[];
    float* const q = space;                          // [kRows][D + 1]
    float* const k = q + kRows * (D + 1);            // [kKeys][D + 1]
    float* const v = k + kKeys * (D + 1);            // [kKeys][D]
    __shared__ double weights[kRows][kKeys + 1];
    __shared__ float plain_weights[kRows][kKeys + 1];
    __shared__ int begin, end;

    const int rows = group * queries, tiles = (rows + kRows - 1) / kRows, units = gridDim.x / tiles;
    const size_t unit = blockIdx.x / tiles;
    const int first = blockIdx.x % tiles * kRows, row = threadIdx.x / kShare, part = threadIdx.x % kShare;
    const float* const unit_q = input + unit * (size_t(rows) + 2 * size_t(keys)) * D;
    const float* const unit_k = unit_q + size_t(rows) * D;
    const float* const unit_v = unit_k + size_t(keys) * D;

    const int place = (first + row) % queries + keys - queries;
    int low = window >= 0 ? max(0, place - window) : 0, high = causal ? min(keys, place + 1) : keys;
    if (first + row >= rows) low = high = 0;
    if (threadIdx.x == 0) {
        begin = keys;
        end = 0;
    }
    __syncthreads();
    if (low < high) {
        atomicMin(&begin, low);
        atomicMax(&end, high);
    }
    for (int i = threadIdx.x; i < kRows * D; i += blockDim.x)
        q[i / D * (D + 1) + i % D] = first + i / D < rows ? unit_q[size_t(first) * D + i] : 0.0f;
    __syncthreads();

    double m = -INFINITY, l = 0.0;
    float plain_m = -INFINITY, plain_l = 0.0f;
    for (int tile = begin / kKeys * kKeys; tile < end; tile += kKeys) {
        __syncthreads();
        load(k, D + 1, unit_k + size_t(tile) * D, min(kKeys, keys - tile));
        __syncthreads();
        for (int j = part; j < kKeys; j += kShare) {
            double s;
            float plain;
            score(bfloat16, scale, q + row * (D + 1), k + j * (D + 1), tile + j, low, high, s, plain);
            if (s == -INFINITY) continue;
            const double top = fmax(m, s);
            l = l * exp(m - top) + exp(s - top);
            m = top;
            const float plain_top = fmaxf(plain_m, plain);
            plain_l = plain_l * expf(plain_m - plain_top) + expf(plain - plain_top);
            plain_m = plain_top;
        }
    }
    for (int lane = 1; lane < kShare; lane *= 2) {    // the four threads of a row agree
        const double other_m = __shfl_xor_sync(~0u, m, lane), other_l = __shfl_xor_sync(~0u, l, lane);
        const double top = fmax(m, other_m);
        if (top != -INFINITY) l = l * exp(m - top) + other_l * exp(other_m - top);
        m = top;
        const float plain_other_m = __shfl_xor_sync(~0u, plain_m, lane);
        const float plain_other_l = __shfl_xor_sync(~0u, plain_l, lane);
        const float plain_top = fmaxf(plain_m, plain_other_m);
        if (plain_top != -INFINITY)
            plain_l = plain_l * expf(plain_m - plain_top) + plain_other_l * expf(plain_other_m - plain_top);
        plain_m = plain_top;
    }

    double o[kColumns];
    float plain_o[kColumns];
    for (int c = 0; c < kColumns; ++c) o[c] = plain_o[c] = 0.0f;
    for (int tile = begin / kKeys * kKeys; tile < end; tile += kKeys) {
        const int count = min(kKeys, keys - tile);
        __syncthreads();
        load(k, D + 1, unit_k + size_t(tile) * D, count);
        load(v, D, unit_v + size_t(tile) * D, count);
        __syncthreads();
        for (int j = part; j < kKeys; j += kShare) {
            double s;
            float plain;
            score(bfloat16, scale, q + row * (D + 1), k + j * (D + 1), tile + j, low, high, s, plain);
            weights[row][j] = s == -INFINITY ? 0.0 : exp(s - m) / l;
            plain_weights[row][j] = s == -INFINITY ? 0.0f : rounded(expf(plain - plain_m) / plain_l, bfloat16);
        }
        __syncwarp();
        for (int j = 0; j < count; ++j) {
            const double p = weights[row][j];
            const float plain_p = plain_weights[row][j];
            for (int c = 0; c < kColumns; ++c) {
                const float value = v[j * D + part * kColumns + c];
                o[c] += p * double(value);
                plain_o[c] += plain_p * value;
            }
        }
    }
    if (first + row >= rows) return;
    float* const to = output + (unit * rows + first + row) * D + part * kColumns;
    const size_t all = size_t(units) * rows * D;
    for (int c = 0; c < kColumns; ++c) {
        to[c] = float(o[c]);
        to[all + c] = rounded(plain_o[c], bfloat16);
    }
}
