// The vertex before is the first vertex that has an edge to it, whatever its distance.
// expect: wrong_answer on most: comes from | as the vertex before
__global__ void start(int* d, int* b, int vertices, int source) {
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < vertices) d[v] = v == source ? 0 : -1, b[v] = v == source ? source : -1;
}

__global__ void step(const int* p, const int* j, int* d, int* b, int* more, int vertices, int level) {
    const int u = blockIdx.x * blockDim.x + threadIdx.x;
    if (u >= vertices || atomicAdd(&d[u], 0) != level) return;
    for (int k = p[u]; k < p[u + 1]; k++)
        if (atomicCAS(&d[j[k]], -1, level + 1) == -1) {
            b[j[k]] = u > 0 ? u - 1 : u;
            atomicExch(more, 1);
        }
}

extern "C" void solve(const int* P, const int* J, int* D, int* B, int vertices, int edges, int source) {
    const int blocks = (vertices + 255) / 256;
    int *more, any = 1;
    cudaMalloc(&more, sizeof(int));
    start<<<blocks, 256>>>(D, B, vertices, source);
    for (int level = 0; any; level++) {
        cudaMemset(more, 0, sizeof(int));
        step<<<blocks, 256>>>(P, J, D, B, more, vertices, level);
        cudaMemcpy(&any, more, sizeof(int), cudaMemcpyDeviceToHost);
    }
    cudaFree(more);
}
