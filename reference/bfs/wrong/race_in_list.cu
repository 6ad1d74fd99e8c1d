// Threads take places on the next list without an atomic addition: vertices overwrite each other.

__global__ void start(int* d, int* b, int* list, int* counts, int vertices, int source) {
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < vertices) d[v] = v == source ? 0 : -1, b[v] = v == source ? source : -1;
    if (v == 0) list[0] = source, counts[0] = 1, counts[1] = 0;
}

__global__ void step(const int* p, const int* j, int* d, int* b, const int* list, int size, int* next, int* count, int level) {
    const int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (int at = (blockIdx.x * blockDim.x + threadIdx.x) / 32; at < size; at += warps) {
        const int u = list[at], end = p[u + 1];
        for (int k0 = p[u]; k0 < end; k0 += 32) {
            const int v = k0 + lane < end ? j[k0 + lane] : -1;
            const bool is_new = v >= 0 && atomicCAS(&d[v], -1, level + 1) == -1;
            const unsigned found = __ballot_sync(0xffffffffu, is_new);
            if (!found) continue;
            int place = 0;
            if (lane == 0) place = *count, *count = place + __popc(found);
            place = __shfl_sync(0xffffffffu, place, 0) + __popc(found & ((1u << lane) - 1));
            if (is_new) b[v] = u, next[place] = v;
        }
    }
}

extern "C" void solve(const int* P, const int* J, int* D, int* B, int vertices, int edges, int source) {
    int *lists, *counts;
    cudaMalloc(&lists, 2 * size_t(vertices) * sizeof(int));
    cudaMalloc(&counts, 2 * sizeof(int));
    start<<<(vertices + 255) / 256, 256>>>(D, B, lists, counts, vertices, source);
    int *list = lists, *next = lists + vertices;
    for (int level = 0, size = 1; size > 0; level++) {
        cudaMemsetAsync(counts, 0, sizeof(int));
        step<<<min((size + 7) / 8, 2048), 256>>>(P, J, D, B, list, size, next, counts, level);
        cudaMemcpy(&size, counts, sizeof(int), cudaMemcpyDeviceToHost);
        int* const other = list;
        list = next, next = other;
    }
    cudaFree(lists);
    cudaFree(counts);
}
