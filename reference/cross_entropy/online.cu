// Cross-entropy in two passes over a row: maximum and sum at once, as in flash attention, then the gradient, which finds the
// row in the second-level cache. A block for each row; a thread has a maximum and a sum of its own, and two of them are
// merged by rescaling the sum of the smaller maximum. Where rows begin at multiples of 16 bytes, eight logits are loaded and
// stored at a time.

#include <cuda_bf16.h>

constexpr int THREADS = 256, EACH = 8;

struct Part {
    float most, sum;
};

__device__ static Part merged(Part a, Part b) {
    const float most = fmaxf(a.most, b.most);
    if (most == -INFINITY) return a;  // both are empty
    return {most, a.sum * __expf(a.most - most) + b.sum * __expf(b.most - most)};
}

__device__ static Part over_block(Part mine) {
    __shared__ Part of_warp[THREADS / 32];
    for (int step = 16; step > 0; step /= 2)
        mine = merged(mine, {__shfl_xor_sync(0xffffffffu, mine.most, step), __shfl_xor_sync(0xffffffffu, mine.sum, step)});
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    Part all = of_warp[0];
    for (int warp = 1; warp < THREADS / 32; warp++) all = merged(all, of_warp[warp]);
    return all;
}

template <int N> struct alignas(2 * N) Group {
    __nv_bfloat16 value[N];
};

template <int N>
__global__ void cross_entropy(
    const __nv_bfloat16* l, const long long* t, float* loss, __nv_bfloat16* gradient, int rows, int classes) {
    const size_t row = blockIdx.x;
    const int target = int(t[row]), groups = classes / N;
    const auto* in = reinterpret_cast<const Group<N>*>(l + row * classes);
    auto* out = reinterpret_cast<Group<N>*>(gradient + row * classes);
    Part mine = {-INFINITY, 0.0f};
    for (int g = threadIdx.x; g < groups; g += THREADS) {
        const Group<N> group = in[g];
        float most = mine.most;
        for (int e = 0; e < N; e++) most = fmaxf(most, float(group.value[e]));
        float sum = mine.sum * __expf(mine.most - most);
        for (int e = 0; e < N; e++) sum += __expf(float(group.value[e]) - most);
        mine = {most, sum};
    }
    const Part all = over_block(mine);
    const float factor = 1.0f / (all.sum * rows), one = 1.0f / rows;
    for (int g = threadIdx.x; g < groups; g += THREADS) {
        Group<N> group = in[g];
        for (int e = 0; e < N; e++) {
            const float p = __expf(float(group.value[e]) - all.most) * factor;
            group.value[e] = __float2bfloat16(p - (N * g + e == target ? one : 0.0f));
        }
        out[g] = group;
    }
    if (threadIdx.x == 0) loss[row] = logf(all.sum) + (all.most - float(l[row * classes + target]));
}

extern "C" void solve(
    const __nv_bfloat16* L, const long long* T, float* loss, __nv_bfloat16* dL, int rows, int classes) {
    if (classes % EACH == 0)
        cross_entropy<EACH><<<rows, THREADS>>>(L, T, loss, dL, rows, classes);
    else
        cross_entropy<1><<<rows, THREADS>>>(L, T, loss, dL, rows, classes);
}
