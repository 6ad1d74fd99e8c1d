// The float64 oracle of attention and of its gradient and, for tensors in half precision, the plain implementation
// whose errors set the tolerance.
//
// Theory of operation
//
//   Both results are computed side by side. The exact one uses float64 throughout. The plain one uses float32 sums and
//   rounds to the tensors' type after every operation, as grader/operators/attention/passes.py does with numpy. Without
//   -DPLAIN, `rounded` is 0 and `store` does not store it, so the compiler drops its computation.
//
//   A unit is a key head with the queries of its group, one query head after the other: group * queries rows. A block
//   of `attention` has 32 of these rows, each shared by four threads. It goes through the keys twice, in tiles of 16:
//   first for the maximum and the sum of every row, then for the weights and O. The maxima and sums stay in
//   `statistics` for two more kernels, which follow with -DGRADIENT. attention_queries has the same blocks and
//   computes dQ. A block of attention_keys has 16 keys, each shared by eight threads, and computes dK and dV from
//   tiles of 16 queries. Tiles in which no query sees a key are skipped.
//
//   Compiled with -DD=d. Input: for each unit Q [rows][D], K [keys][D], V [keys][D], and with -DGRADIENT dO [rows][D].
//   Output: for each unit O, with -DGRADIENT also dQ, dK, dV; with -DPLAIN then the same of the plain implementation.
//   Grids of 128 threads: units * ceil(rows / 32) blocks, or units * ceil(keys / 16).

#include <cuda_fp16.h>

constexpr int kThreads = 128, kRows = 32, kTile = 16, kPitch = D + 1;
constexpr int kRowShare = kThreads / kRows, kKeyShare = kThreads / kTile;    // threads that share a row, a key

#ifdef GRADIENT
constexpr bool kGradient = true;
#else
constexpr bool kGradient = false;
#endif

#ifdef PLAIN
constexpr bool kPlain = true;
#else
constexpr bool kPlain = false;
#endif

// The softmax of a row, by its maximum m and its sum l, and d = dO . O.
struct Statistics {
    double m, l, d;
    float plain_m, plain_l, plain_d;
};

// A number as computed exactly and by the plain implementation.
struct Pair {
    double exact;
    float plain;
};

__device__ float rounded(float value, int bfloat16) {
    if (!kPlain) return 0.0f;
    if (!bfloat16) return __half2float(__float2half_rn(value));
    const unsigned bits = __float_as_uint(value);
    return __uint_as_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

// The numbers of the file's header, and the addresses of the tensors of unit number `unit` of `units`.
struct Problem {
    int rows, queries, keys, causal, window, bfloat16;
    double scale;
    const float *q, *k, *v, *g;    // g: dO
    float *o, *dq, *dk, *dv;
    size_t plain;    // distance from an exact value to the plain one
    Statistics* statistics;

    __device__ Problem(const float* input, float* output, Statistics* all, int group, int queries_, int keys_, int causal_,
                       int window_, int bfloat16_, double scale_, int units, int unit)
        : rows(group * queries_), queries(queries_), keys(keys_), causal(causal_), window(window_), bfloat16(bfloat16_),
          scale(scale_), statistics(all + size_t(unit) * rows) {
        const size_t of_rows = size_t(rows) * D, of_keys = size_t(keys) * D;
        q = input + unit * ((1 + kGradient) * of_rows + 2 * of_keys);
        k = q + of_rows;
        v = k + of_keys;
        g = v + of_keys;
        const size_t outputs = of_rows + kGradient * (of_rows + 2 * of_keys);
        o = output + unit * outputs;
        dq = o + of_rows;
        dk = dq + of_rows;
        dv = dk + of_keys;
        plain = units * outputs;
    }

    // The keys that a row sees: from low to before high.
    __device__ void seen(int row, int& low, int& high) const {
        const int place = row % queries + keys - queries;
        low = window >= 0 ? max(0, place - window) : 0;
        high = causal ? min(keys, place + 1) : keys;
        if (row >= rows) low = high = 0;
    }

    __device__ void store(float* to, double exact, float value) const {
        to[0] = float(exact);
        if (kPlain) to[plain] = rounded(value, bfloat16);
    }
};

__device__ Pair dot(const float* a, const float* b) {
    Pair sum{0.0, 0.0f};
    for (int x = 0; x < D; ++x) {
        sum.exact += double(a[x]) * double(b[x]);
        sum.plain += a[x] * b[x];
    }
    return sum;
}

__device__ Pair score(const Problem& p, const float* q, const float* k) {
    const Pair product = dot(q, k);
    return {product.exact * p.scale, rounded(rounded(product.plain, p.bfloat16) * float(p.scale), p.bfloat16)};
}

__device__ Pair weight(const Problem& p, const Statistics& row, const Pair& s) {
    return {exp(s.exact - row.m) / row.l, rounded(expf(s.plain - row.plain_m) / row.plain_l, p.bfloat16)};
}

// dS = P (dP - d).
__device__ Pair slope(const Problem& p, const Statistics& row, const Pair& weight, const float* g, const float* v) {
    const Pair dp = dot(g, v);
    return {weight.exact * (dp.exact - row.d),
            rounded((rounded(dp.plain, p.bfloat16) - row.plain_d) * weight.plain, p.bfloat16)};
}

// Loads `count` rows of a tensor from row `first` on. Rows from `end` on are zeros.
__device__ void load(float* to, const float* tensor, int first, int end, int count) {
    for (int i = threadIdx.x; i < count * D; i += kThreads)
        to[i / D * kPitch + i % D] = first + i / D < end ? tensor[size_t(first) * D + i] : 0.0f;
}

// The keys that any row of this block sees: from `begin`, a multiple of kTile, to before `end`.
__device__ void block_sees(int low, int high, int& begin, int& end) {
    __shared__ int first, last;
    if (threadIdx.x == 0) first = 0x7fffffff, last = 0;
    __syncthreads();
    if (low < high) {
        atomicMin(&first, low);
        atomicMax(&last, high);
    }
    __syncthreads();
    begin = first / kTile * kTile;
    end = last;
}

extern "C" __global__ void __launch_bounds__(kThreads)
attention(const float* input, float* output, Statistics* statistics, int group, int queries, int keys, int causal,
          int window, int bfloat16, double scale) {
    extern __shared__ float shared[];
    float *const q = shared, *const k = q + kRows * kPitch, *const v = k + kTile * kPitch;
    __shared__ Pair weights[kRows][kTile + 1];
    const int blocks = (group * queries + kRows - 1) / kRows, units = gridDim.x / blocks;
    const Problem p(input, output, statistics, group, queries, keys, causal, window, bfloat16, scale, units,
                    blockIdx.x / blocks);
    const int first = blockIdx.x % blocks * kRows, row = threadIdx.x / kRowShare, part = threadIdx.x % kRowShare;
    int low, high, begin, end;
    p.seen(first + row, low, high);
    block_sees(low, high, begin, end);
    load(q, p.q, first, p.rows, kRows);

    Statistics my{-INFINITY, 0.0, 0.0, -INFINITY, 0.0f, 0.0f};
    for (int tile = begin; tile < end; tile += kTile) {
        __syncthreads();
        load(k, p.k, tile, keys, kTile);
        __syncthreads();
        for (int j = part; j < kTile; j += kRowShare) {
            if (tile + j < low || tile + j >= high) continue;
            const Pair s = score(p, q + row * kPitch, k + j * kPitch);
            const double top = fmax(my.m, s.exact);
            my.l = my.l * exp(my.m - top) + exp(s.exact - top);
            my.m = top;
            const float plain_top = fmaxf(my.plain_m, s.plain);
            my.plain_l = my.plain_l * expf(my.plain_m - plain_top) + expf(s.plain - plain_top);
            my.plain_m = plain_top;
        }
    }
    for (int lane = 1; lane < kRowShare; lane *= 2) {    // combine the results of a row's threads
        const double m = __shfl_xor_sync(~0u, my.m, lane), l = __shfl_xor_sync(~0u, my.l, lane);
        const double top = fmax(my.m, m);
        if (top != -INFINITY) my.l = my.l * exp(my.m - top) + l * exp(m - top);
        my.m = top;
        const float plain_m = __shfl_xor_sync(~0u, my.plain_m, lane), plain_l = __shfl_xor_sync(~0u, my.plain_l, lane);
        const float plain_top = fmaxf(my.plain_m, plain_m);
        if (plain_top != -INFINITY)
            my.plain_l = my.plain_l * expf(my.plain_m - plain_top) + plain_l * expf(plain_m - plain_top);
        my.plain_m = plain_top;
    }

    constexpr int columns = D / kRowShare;
    double o[columns] = {};
    float plain_o[columns] = {};
    for (int tile = begin; tile < end; tile += kTile) {
        __syncthreads();
        load(k, p.k, tile, keys, kTile);
        load(v, p.v, tile, keys, kTile);
        __syncthreads();
        for (int j = part; j < kTile; j += kRowShare) {
            const bool hidden = tile + j < low || tile + j >= high;
            weights[row][j] = hidden ? Pair{0.0, 0.0f} : weight(p, my, score(p, q + row * kPitch, k + j * kPitch));
        }
        __syncwarp();
        for (int j = 0; j < kTile; ++j)
            for (int c = 0; c < columns; ++c) {
                const float value = v[j * kPitch + part * columns + c];
                o[c] += weights[row][j].exact * double(value);
                plain_o[c] += weights[row][j].plain * value;
            }
    }
    if (first + row < p.rows)
        for (int c = 0; c < columns; ++c) {
            const size_t at = size_t(first + row) * D + part * columns + c;
            p.store(p.o + at, o[c], plain_o[c]);
            if (kGradient) {
                my.d += double(p.g[at]) * o[c];
                my.plain_d += p.g[at] * rounded(plain_o[c], bfloat16);
            }
        }
    for (int lane = 1; lane < kRowShare; lane *= 2) {
        my.d += __shfl_xor_sync(~0u, my.d, lane);
        my.plain_d += __shfl_xor_sync(~0u, my.plain_d, lane);
    }
    if (part == 0 && first + row < p.rows) p.statistics[first + row] = my;
}

#ifdef GRADIENT

extern "C" __global__ void __launch_bounds__(kThreads)
attention_queries(const float* input, float* output, Statistics* statistics, int group, int queries, int keys,
                  int causal, int window, int bfloat16, double scale) {
    extern __shared__ float shared[];
    float *const q = shared, *const g = q + kRows * kPitch, *const k = g + kRows * kPitch, *const v = k + kTile * kPitch;
    __shared__ Pair slopes[kRows][kTile + 1];
    const int blocks = (group * queries + kRows - 1) / kRows, units = gridDim.x / blocks;
    const Problem p(input, output, statistics, group, queries, keys, causal, window, bfloat16, scale, units,
                    blockIdx.x / blocks);
    const int first = blockIdx.x % blocks * kRows, row = threadIdx.x / kRowShare, part = threadIdx.x % kRowShare;
    int low, high, begin, end;
    p.seen(first + row, low, high);
    block_sees(low, high, begin, end);
    load(q, p.q, first, p.rows, kRows);
    load(g, p.g, first, p.rows, kRows);
    const Statistics my = p.statistics[min(first + row, p.rows - 1)];

    constexpr int columns = D / kRowShare;
    double dq[columns] = {};
    float plain_dq[columns] = {};
    for (int tile = begin; tile < end; tile += kTile) {
        __syncthreads();
        load(k, p.k, tile, keys, kTile);
        load(v, p.v, tile, keys, kTile);
        __syncthreads();
        for (int j = part; j < kTile; j += kRowShare) {
            slopes[row][j] = {0.0, 0.0f};
            if (tile + j < low || tile + j >= high) continue;
            const Pair seen = weight(p, my, score(p, q + row * kPitch, k + j * kPitch));
            slopes[row][j] = slope(p, my, seen, g + row * kPitch, v + j * kPitch);
        }
        __syncwarp();
        for (int j = 0; j < kTile; ++j)
            for (int c = 0; c < columns; ++c) {
                const float value = k[j * kPitch + part * columns + c];
                dq[c] += slopes[row][j].exact * double(value);
                plain_dq[c] += slopes[row][j].plain * value;
            }
        __syncwarp();
    }
    if (first + row >= p.rows) return;
    for (int c = 0; c < columns; ++c)
        p.store(p.dq + size_t(first + row) * D + part * columns + c, dq[c] * scale, plain_dq[c] * scale);
}

extern "C" __global__ void __launch_bounds__(kThreads)
attention_keys(const float* input, float* output, Statistics* statistics, int group, int queries, int keys, int causal,
               int window, int bfloat16, double scale) {
    extern __shared__ float shared[];
    float *const k = shared, *const v = k + kTile * kPitch, *const q = v + kTile * kPitch, *const g = q + kTile * kPitch;
    __shared__ Pair weights[kTile][kTile + 1], slopes[kTile][kTile + 1];
    const int blocks = (keys + kTile - 1) / kTile, units = gridDim.x / blocks;
    const Problem p(input, output, statistics, group, queries, keys, causal, window, bfloat16, scale, units,
                    blockIdx.x / blocks);
    const int first = blockIdx.x % blocks * kTile, key = threadIdx.x / kKeyShare, part = threadIdx.x % kKeyShare;
    // The queries of each head that see any of these keys.
    const int ahead = keys - queries, last = min(first + kTile, keys) - 1;
    const int begin = causal ? max(0, first - ahead) : 0;
    const int end = window >= 0 ? min(queries, last - ahead + window + 1) : queries;
    load(k, p.k, first, keys, kTile);
    load(v, p.v, first, keys, kTile);

    constexpr int columns = D / kKeyShare;
    double dk[columns] = {}, dv[columns] = {};
    float plain_dk[columns] = {}, plain_dv[columns] = {};
    for (int head = 0; head < group; ++head)
        for (int tile = begin; tile < end; tile += kTile) {
            const int first_row = head * queries + tile, end_row = head * queries + end;
            __syncthreads();
            load(q, p.q, first_row, end_row, kTile);
            load(g, p.g, first_row, end_row, kTile);
            __syncthreads();
            for (int j = part; j < kTile; j += kKeyShare) {
                weights[key][j] = slopes[key][j] = {0.0, 0.0f};
                if (first_row + j >= end_row) continue;
                int low, high;
                p.seen(first_row + j, low, high);
                if (first + key < low || first + key >= high) continue;
                const Statistics& row = p.statistics[first_row + j];
                weights[key][j] = weight(p, row, score(p, q + j * kPitch, k + key * kPitch));
                slopes[key][j] = slope(p, row, weights[key][j], g + j * kPitch, v + key * kPitch);
            }
            __syncwarp();
            for (int j = 0; j < kTile; ++j)
                for (int c = 0; c < columns; ++c) {
                    const float of_q = q[j * kPitch + part * columns + c], of_g = g[j * kPitch + part * columns + c];
                    dk[c] += slopes[key][j].exact * double(of_q);
                    plain_dk[c] += slopes[key][j].plain * of_q;
                    dv[c] += weights[key][j].exact * double(of_g);
                    plain_dv[c] += weights[key][j].plain * of_g;
                }
            __syncwarp();
        }
    if (first + key >= keys) return;
    for (int c = 0; c < columns; ++c) {
        const size_t at = size_t(first + key) * D + part * columns + c;
        p.store(p.dk + at, dk[c] * scale, plain_dk[c] * scale);
        p.store(p.dv + at, dv[c], plain_dv[c]);
    }
}

#endif
