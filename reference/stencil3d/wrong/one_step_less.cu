// The loop does one step less.
// expect: wrong_answer on most: without reaching its launch | is missing in V

__global__ void step(const float* u, float* v, int nx, int ny, int nz) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz) return;
    const int plane = nx * ny, i = z * plane + y * nx + x;
    float value = u[i];
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1)
        value += (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + u[i - plane] + u[i + plane] - 6.0f * u[i]) / 8.0f;
    v[i] = value;
}

extern "C" void solve(const float* U, float* V, int nx, int ny, int nz, int steps) {
    const dim3 threads(32, 4, 2), blocks((nx + 31) / 32, (ny + 3) / 4, (nz + 1) / 2);
    float* other;
    cudaMalloc(&other, size_t(nx) * ny * nz * sizeof(float));
    const float* from = U;
    cudaMemcpy(V, U, size_t(nx) * ny * nz * sizeof(float), cudaMemcpyDeviceToDevice);
    for (int s = 1; s < steps; s++) {
        float* const to = (steps - s) % 2 ? V : other;
        step<<<blocks, threads>>>(from, to, nx, ny, nz);
        from = to;
    }
    cudaFree(other);
}
