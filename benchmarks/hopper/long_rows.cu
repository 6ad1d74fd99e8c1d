// Softmax of long rows: a cluster of four blocks shares a row, and adds up through distributed shared memory.
//
//   long_rows [ROWS] [REPETITIONS]        rows of 65536 floats; prints the largest error, and TB/s; exit 1 when wrong
//
// Theory of operation. A row of 256 KB does not fit into the shared memory of one multiprocessor, but into that of four.
// Each block fetches its quarter with one bulk copy (no tensor map: the bytes are adjacent), finds its maximum and the sum of
// its exponentials, and puts both into the shared memory of all four blocks. After a barrier of the cluster, everyone knows
// the row's. The result overwrites the quarter and goes back with another bulk copy: each element is read once and written
// once, which for a kernel without clusters needs rows that fit into one block.
//
// Build: nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a long_rows.cu -o long_rows

#include "common.cuh"

using namespace hopper;

constexpr int kCluster = 4, kColumns = 65536, kMine = kColumns / kCluster, kThreads = 512, kBytes = kMine * 4;

struct Part {
    float top, sum;    // the largest element, and the sum of exp(x - top)
};

__device__ __forceinline__ Part merged(Part a, Part b) {
    const float top = fmaxf(a.top, b.top);
    return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top)};
}

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads) softmax(const float* from, float* to, int rows) {
    extern __shared__ __align__(128) float mine[];
    __shared__ Part warps[kThreads / 32], parts[2][kCluster];
    __shared__ uint64_t full;
    const int rank = cluster_rank(), lane = threadIdx.x % 32;
    if (threadIdx.x == 0) barrier_init(&full, 1), barrier_init_done();
    cluster_sync();    // nobody writes to a block that has not started

    int turn = 0;
    for (int row = blockIdx.x / kCluster; row < rows; row += gridDim.x / kCluster, turn ^= 1) {
        const size_t start = size_t(row) * kColumns + rank * kMine;
        if (threadIdx.x == 0) {
            wait_until_read();    // of the row before this one
            expect_bytes(&full, kBytes);
            copy_bytes(mine, from + start, kBytes, &full);
        }
        wait(&full, turn);
        Part part{-INFINITY, 0.0f};
        for (int i = threadIdx.x; i < kMine; i += kThreads) part.top = fmaxf(part.top, mine[i]);
        for (int i = threadIdx.x; i < kMine; i += kThreads) part.sum += __expf(mine[i] - part.top);
        for (int step = 16; step > 0; step /= 2)
            part = merged(part, {__shfl_xor_sync(~0u, part.top, step), __shfl_xor_sync(~0u, part.sum, step)});
        if (lane == 0) warps[threadIdx.x / 32] = part;
        __syncthreads();
        if (threadIdx.x < kCluster) {    // thread i carries this block's part to block i
            for (int i = 0; i < kThreads / 32; ++i) part = i ? merged(part, warps[i]) : warps[0];
            asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(address_at(&parts[turn][rank], threadIdx.x)),
                         "f"(part.top), "f"(part.sum)
                         : "memory");
        }
        __syncwarp();
        cluster_sync();    // two sets of parts in turns: nobody writes the next ones before all have read these
        part = parts[turn][0];
        for (int i = 1; i < kCluster; ++i) part = merged(part, parts[turn][i]);
        const float inverse = 1.0f / part.sum;
        for (int i = threadIdx.x; i < kMine; i += kThreads) mine[i] = __expf(mine[i] - part.top) * inverse;
        fence_shared();
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + start),
                         "r"(shared_address(mine)), "r"(kBytes)
                         : "memory");
            commit_stores();
        }
    }
    if (threadIdx.x == 0) wait_until_stored();
    __syncwarp();
    cluster_sync();    // a block must not end while another may still write to it
}

int main(int argc, char** argv) {
    const int rows = argc > 1 ? std::atoi(argv[1]) : 4096, repetitions = argc > 2 ? std::atoi(argv[2]) : 20;
    if (rows < 1) return std::fprintf(stderr, "usage: long_rows [ROWS] [REPETITIONS]\n"), 2;
    std::vector<float> a(size_t(rows) * kColumns), b(a.size());
    Random random;
    for (float& x : a) x = 8 * random.number();
    float *const from = to_device(a), *const to = to_device(b);
    check(cudaFuncSetAttribute(softmax, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    const auto launch = [&] {
        softmax<<<std::min(3 * processors() / kCluster, rows) * kCluster, kThreads, kBytes>>>(from, to, rows);
        check(cudaGetLastError());
    };
    launch();
    check(cudaMemcpy(b.data(), to, b.size() * 4, cudaMemcpyDeviceToHost));
    double largest = 0.0;    // relative
    for (int row = 0; row < rows; row += std::max(1, rows / 16)) {
        const float *const x = &a[size_t(row) * kColumns], *const y = &b[size_t(row) * kColumns];
        double sum = 0.0;
        for (int i = 0; i < kColumns; ++i) sum += std::exp(double(x[i]));
        for (int i = 0; i < kColumns; ++i) {
            const double error = std::fabs(y[i] * sum / std::exp(double(x[i])) - 1.0);
            largest = std::isnan(error) ? INFINITY : std::max(largest, error);
        }
    }
    const bool right = largest < 1e-5;
    std::printf("%s: largest relative error %.1e\n", right ? "ok" : "WRONG", largest);
    if (repetitions > 0) std::printf("%d rows: %.2f TB/s\n", rows, 8.0 * a.size() / milliseconds(repetitions, launch) / 1e9);
    return right ? 0 : 1;
}
