// The maximum is not taken off: exp overflows, or is 0 everywhere.
// expect: wrong_answer on most: is the maximum subtracted | in this line: 2 ^

#include <cuda_bf16.h>

constexpr int THREADS = 256;

// The largest, or the sum, of the values that the threads of the block have.
__device__ static float over_block(float mine, bool largest) {
    __shared__ float part[THREADS];
    part[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            const float other = part[threadIdx.x + half];
            part[threadIdx.x] = largest ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
        }
    }
    __syncthreads();
    const float all = part[0];
    __syncthreads();
    return all;
}

__global__ void cross_entropy(
    const __nv_bfloat16* l, const long long* t, float* loss, __nv_bfloat16* gradient, int rows, int classes) {
    const size_t row = blockIdx.x;
    const int target = int(t[row]);
    l += row * classes, gradient += row * classes;
    float most = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < classes; j += THREADS) most = fmaxf(most, float(l[j]));
    most = 0.0f;
    for (int j = threadIdx.x; j < classes; j += THREADS) sum += expf(float(l[j]) - most);
    sum = over_block(sum, false);
    for (int j = threadIdx.x; j < classes; j += THREADS) {
        const float p = expf(float(l[j]) - most) / sum;
        gradient[j] = __float2bfloat16((p - (j == target ? 1.0f : 0.0f)) / rows);
    }
    if (threadIdx.x == 0) loss[row] = logf(sum) + most - float(l[target]);
}

extern "C" void solve(
    const __nv_bfloat16* L, const long long* T, float* loss, __nv_bfloat16* dL, int rows, int classes) {
    cross_entropy<<<rows, THREADS>>>(L, T, loss, dL, rows, classes);
}
