// saxpy, four numbers at a time: loads and stores of 16 bytes, two of them under way in each thread. The numbers that make
// no whole group of four are the last threads' own.

__device__ static float4 line(float4 x, float4 y, float a) {
    return make_float4(a * x.x + y.x, a * x.y + y.y, a * x.z + y.z, a * x.w + y.w);
}

__global__ void saxpy(const float* x, const float* y, float* z, int n, float a) {
    const int groups = n / 4;
    const int step = gridDim.x * blockDim.x;
    const auto* x4 = reinterpret_cast<const float4*>(x);
    const auto* y4 = reinterpret_cast<const float4*>(y);
    auto* z4 = reinterpret_cast<float4*>(z);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 4 * groups) z[4 * groups + i] = a * x[4 * groups + i] + y[4 * groups + i];
    for (; i + step < groups; i += 2 * step) {
        const float4 x0 = x4[i], y0 = y4[i], x1 = x4[i + step], y1 = y4[i + step];
        z4[i] = line(x0, y0, a);
        z4[i + step] = line(x1, y1, a);
    }
    if (i < groups) z4[i] = line(x4[i], y4[i], a);
}

extern "C" void solve(const float* X, const float* Y, float* Z, int n, float a) {
    saxpy<<<(n / 8 + 255) / 256 + 1, 256>>>(X, Y, Z, n, a);
}
