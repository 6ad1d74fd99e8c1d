// Thirty traversals of a graph of 200 nodes, in the manner of the Indigo suite (Liu, Azami, Burtscher, 2022): nodes pull
// from or push to their neighbours; a thread, a warp or a block processes a node; with and without bugs.
//
// A program's name is its pattern, who processes a node, and its bug. The list at the end of the file gives its label: what
// a tool must report of race, note (a plain read of a word that others change atomically) and bounds; clean is nothing.
#include "../seeded/seeded.h"

enum By { THREAD, WARP, BLOCK };
enum Bug { NONE = 0, ATOMIC = 1, BOUNDS = 2, GUARD = 4, SYNC = 8, INPLACE = 16 };

constexpr int NODES = 200;
struct Graph {
    const int *first, *neighbour; // the neighbours of node v: neighbour[first[v]] … neighbour[first[v + 1] - 1]
};

// The node that this thread begins with, the step to its next one, and its share of a node's edges.
template <By by> struct Share {
    int node, step, edge, edges;
    __device__ Share() {
        const int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
        if (by == THREAD) node = thread, step = threads, edge = 0, edges = 1;
        if (by == WARP) node = thread / 32, step = threads / 32, edge = thread % 32, edges = 32;
        if (by == BLOCK) node = blockIdx.x, step = gridDim.x, edge = threadIdx.x, edges = blockDim.x;
    }
};
template <Bug bug> __device__ int end_of_nodes() { return bug & BOUNDS ? NODES + 1 : NODES; }

// Adds up the values of those who process one node; the first of them gets the sum.
template <By by, Bug bug> __device__ int total(int value) {
    __shared__ int part[32];
    if (by == THREAD) return value;
    for (int k = 16; k; k /= 2) value += __shfl_down_sync(~0u, value, k);
    if (by == WARP) return value;
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
    if (!(bug & SYNC)) __syncthreads();
    int sum = 0;
    for (int k = 0; k < blockDim.x / 32; k++) sum += part[k];
    __syncthreads();
    return sum;
}

// A node pulls its neighbours' values. INPLACE: into the array that others still read.
template <By by, Bug bug> __global__ void pull(Graph g, int *in, int *out, int *) {
    const Share<by> s;
    for (int v = s.node; v < end_of_nodes<bug>(); v += s.step) {
        int sum = 0;
        for (int j = g.first[v] + s.edge; j < g.first[v + 1]; j += s.edges) sum += in[g.neighbour[j]];
        sum = total<by, bug>(sum);
        if (s.edge == 0) (bug & INPLACE ? in : out)[v] = sum + v + 1;
    }
}
// A node pushes its value to its neighbours.
template <By by, Bug bug> __global__ void push(Graph g, int *in, int *out, int *) {
    const Share<by> s;
    for (int v = s.node; v < end_of_nodes<bug>(); v += s.step)
        for (int j = g.first[v] + s.edge; j < g.first[v + 1]; j += s.edges) {
            if (bug & ATOMIC) out[g.neighbour[j]] += in[v] + 1;
            else atomicAdd(&out[g.neighbour[j]], in[v] + 1);
        }
}
// The largest neighbour of a node, over its edges. GUARD: looks first whether the maximum would change.
template <By by, Bug bug> __global__ void maximum(Graph g, int *, int *out, int *) {
    const Share<by> s;
    for (int v = s.node; v < end_of_nodes<bug>(); v += s.step)
        for (int j = g.first[v] + s.edge; j < g.first[v + 1]; j += s.edges) {
            const int value = g.neighbour[j];
            if (!(bug & GUARD) || out[0] < value) atomicMax(&out[0], value);
        }
}
// Nodes with many neighbours enter a list.
template <By by, Bug bug> __global__ void list(Graph g, int *, int *out, int *count) {
    const Share<by> s;
    for (int v = s.node; v < end_of_nodes<bug>(); v += s.step)
        if (s.edge == 0 && g.first[v + 1] - g.first[v] > 3) {
            int at;
            if (bug & ATOMIC) at = (*count)++;
            else at = atomicAdd(count, 1);
            out[at] = v;
        }
}

static Graph graph() {
    std::vector<int> first = {0}, neighbour;
    unsigned random = 1;
    for (int v = 0; v < NODES; v++) {
        random = random * 1664525u + 1013904223u;
        for (unsigned k = 0; k < random >> 29; k++) {
            unsigned other = random >> (8 + k);
            neighbour.push_back((int)((v * 7 + other) % NODES));
        }
        first.push_back((int)neighbour.size());
    }
    auto copy = [](const std::vector<int> &from) {
        int *p = fresh<int>(from.size());
        cudaMemcpy(p, from.data(), from.size() * sizeof(int), cudaMemcpyHostToDevice);
        return p;
    };
    return {copy(first), copy(neighbour)};
}

#define LABEL(pattern, by, bugs, label)                                                                                  \
    PROGRAM(label##__##pattern##_##by##_##bugs) {                                                                        \
        pattern<by, (Bug)(bugs)><<<4, 64>>>(graph(), filled<int>(NODES), filled<int>(NODES), filled<int>(1));                        \
    }
#define ATOMIC_BOUNDS 3

LABEL(pull, THREAD, NONE, clean)
LABEL(pull, WARP, NONE, clean)
LABEL(pull, BLOCK, NONE, clean)
LABEL(pull, THREAD, BOUNDS, bounds)
LABEL(pull, WARP, BOUNDS, bounds)
LABEL(pull, BLOCK, BOUNDS, bounds)
LABEL(pull, BLOCK, SYNC, race)
LABEL(pull, THREAD, INPLACE, race)
LABEL(pull, WARP, INPLACE, race)
LABEL(pull, BLOCK, INPLACE, race)
LABEL(push, THREAD, NONE, clean)
LABEL(push, WARP, NONE, clean)
LABEL(push, BLOCK, NONE, clean)
LABEL(push, THREAD, ATOMIC, race)
LABEL(push, WARP, ATOMIC, race)
LABEL(push, BLOCK, ATOMIC, race)
LABEL(push, THREAD, ATOMIC_BOUNDS, race_bounds)
LABEL(push, WARP, ATOMIC_BOUNDS, race_bounds)
LABEL(push, BLOCK, ATOMIC_BOUNDS, race_bounds)
LABEL(maximum, THREAD, NONE, clean)
LABEL(maximum, WARP, NONE, clean)
LABEL(maximum, BLOCK, NONE, clean)
LABEL(maximum, THREAD, GUARD, note)
LABEL(maximum, WARP, GUARD, note)
LABEL(maximum, BLOCK, GUARD, note)
LABEL(list, THREAD, NONE, clean)
LABEL(list, WARP, NONE, clean)
LABEL(list, THREAD, ATOMIC, race)
LABEL(list, WARP, ATOMIC, race)
LABEL(list, BLOCK, ATOMIC_BOUNDS, race_bounds)
