// Breadth-first search with a list of the vertices of a level, the frontier: a level costs what it has, however many vertices
// there are. A warp takes a vertex, its lanes the vertex's edges. Who reaches a vertex first, by an atomic exchange, puts it on
// the next list; the lanes of a warp that do so take places there together. A vertex with very many edges would keep one warp
// busy long after all others: it waits on a list of its own, and then all warps share its edges.

constexpr int LARGE = 1024, THREADS = 256, BLOCKS = 2048;
enum { NEXT, WAITING }; // the counts: vertices on the next list, large ones of this level

__global__ void start(int* d, int* b, int* list, int vertices, int source) {
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < vertices) d[v] = v == source ? 0 : -1, b[v] = v == source ? source : -1;
    if (v == 0) list[0] = source;
}

// A warp looks at 32 edges of u at a time, from place `first` on, and goes on by `stride` places.
__device__ void look(const int* p, const int* j, int* d, int* b, int u, int first, int stride, int* next, int* counts, int level) {
    const int lane = threadIdx.x % 32, end = p[u + 1];
    for (int k0 = p[u] + first; k0 < end; k0 += stride) {
        const int v = k0 + lane < end ? j[k0 + lane] : -1;
        const bool is_new = v >= 0 && atomicCAS(&d[v], -1, level + 1) == -1;
        const unsigned found = __ballot_sync(0xffffffffu, is_new);
        if (!found) continue;
        int place = 0;
        if (lane == 0) place = atomicAdd(&counts[NEXT], __popc(found));
        place = __shfl_sync(0xffffffffu, place, 0) + __popc(found & ((1u << lane) - 1));
        if (is_new) b[v] = u, next[place] = v;
    }
}

__global__ void step(const int* p, const int* j, int* d, int* b, const int* list, int size, int* next, int* large, int* counts, int level) {
    const int warps = gridDim.x * blockDim.x / 32;
    for (int at = (blockIdx.x * blockDim.x + threadIdx.x) / 32; at < size; at += warps) {
        const int u = list[at];
        if (p[u + 1] - p[u] <= LARGE)
            look(p, j, d, b, u, 0, 32, next, counts, level);
        else if (threadIdx.x % 32 == 0)
            large[atomicAdd(&counts[WAITING], 1)] = u;
    }
}

__global__ void step_of_large(const int* p, const int* j, int* d, int* b, const int* large, int size, int* next, int* counts, int level) {
    const int threads = gridDim.x * blockDim.x, first = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32;
    for (int at = 0; at < size; at++) look(p, j, d, b, large[at], first, threads, next, counts, level);
}

extern "C" void solve(const int* P, const int* J, int* D, int* B, int vertices, int edges, int source) {
    int *lists, *counts, *large;
    cudaMalloc(&lists, 2 * size_t(vertices) * sizeof(int));
    cudaMalloc(&large, (size_t(edges) / LARGE + 1) * sizeof(int));
    cudaMalloc(&counts, 2 * sizeof(int));
    start<<<(vertices + THREADS - 1) / THREADS, THREADS>>>(D, B, lists, vertices, source);
    int *list = lists, *next = lists + vertices, found[2] = {1, 0};
    for (int level = 0; found[NEXT] > 0; level++) {
        cudaMemsetAsync(counts, 0, 2 * sizeof(int));
        step<<<min((found[NEXT] + 7) / 8, BLOCKS), THREADS>>>(P, J, D, B, list, found[NEXT], next, large, counts, level);
        cudaMemcpy(found, counts, sizeof found, cudaMemcpyDeviceToHost);
        if (found[WAITING] > 0) {
            step_of_large<<<BLOCKS / 4, THREADS>>>(P, J, D, B, large, found[WAITING], next, counts, level);
            cudaMemcpy(found, counts, sizeof(int), cudaMemcpyDeviceToHost);
        }
        int* const other = list;
        list = next, next = other;
    }
    cudaFree(lists);
    cudaFree(large);
    cudaFree(counts);
}
