// Heat in a box: a thread walks through a column of cells along z and keeps the cells below, here and above in registers, so
// that a step reads each cell about once. Neighbours along x and y are in the first-level cache, since the threads of a
// block read the same plane at nearly the same time.

constexpr int DEPTH = 16;

__global__ void step(const float* u, float* v, int nx, int ny, int nz) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    const size_t plane = size_t(nx) * ny;
    const int z0 = blockIdx.z * DEPTH, end = min(z0 + DEPTH, nz);
    const bool inside = x > 0 && x < nx - 1 && y > 0 && y < ny - 1;
    size_t i = z0 * plane + size_t(y) * nx + x;
    float below = z0 > 0 ? u[i - plane] : 0.0f, here = u[i];
    for (int z = z0; z < end; z++, i += plane) {
        const float above = z < nz - 1 ? u[i + plane] : 0.0f;
        float value = here;
        if (inside && z > 0 && z < nz - 1)
            value += (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + below + above - 6.0f * here) / 8.0f;
        v[i] = value;
        below = here, here = above;
    }
}

extern "C" void solve(const float* U, float* V, int nx, int ny, int nz, int steps) {
    const dim3 threads(64, 4), blocks((nx + 63) / 64, (ny + 3) / 4, (nz + DEPTH - 1) / DEPTH);
    float* other;
    cudaMalloc(&other, size_t(nx) * ny * nz * sizeof(float));
    const float* from = U;
    for (int s = 0; s < steps; s++) {
        float* const to = (steps - s) % 2 ? V : other;
        step<<<blocks, threads>>>(from, to, nx, ny, nz);
        from = to;
    }
    cudaFree(other);
}
