// B = Aᵀ of float32: tensor copies in both directions, and a swizzle that ordinary loads and stores undo.
//
//   transpose [SIZE] [REPETITIONS]        prints whether all elements are right, and TB/s; exit 1 when not
//
// Theory of operation. A tile is 32 x 32 floats, rows of 128 bytes. With the 128-byte swizzle, the 16-byte piece c of row r
// lies at piece c ^ (r % 8): a warp that reads 8 pieces of one column of pieces meets all banks once. Each thread takes a
// block of 4 x 4 floats out of one tile, turns it in registers and puts it into the other. Then the copy engine stores that
// tile; it reads shared memory by another path than the threads wrote it, hence fence_shared before the barrier. Tiles are
// fetched one ahead; a block of 64 threads walks over the matrix.
//
// Build: nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a transpose.cu -o transpose

#include "common.cuh"

using namespace hopper;

constexpr int kSide = 32, kThreads = 64, kBytes = kSide * kSide * 4;

__device__ __forceinline__ float4& piece(char* tile, int row, int column) {
    return *reinterpret_cast<float4*>(tile + row * 128 + ((column ^ row % 8) * 16));
}

__global__ void __launch_bounds__(kThreads)
transpose(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, int tiles_per_row, int tiles) {
    __shared__ __align__(1024) char in[2][kBytes], out[kBytes];
    __shared__ uint64_t full[2];
    if (threadIdx.x == 0) barrier_init(&full[0], 1), barrier_init(&full[1], 1), barrier_init_done();
    __syncthreads();

    const auto fetch = [&](int tile, int stage) {
        expect_bytes(&full[stage], kBytes);
        copy_box(in[stage], &from, tile % tiles_per_row * kSide, tile / tiles_per_row * kSide, 0, 0, &full[stage]);
    };
    if (threadIdx.x == 0 && blockIdx.x < tiles) fetch(blockIdx.x, 0);
    int stage = 0, parity = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        if (threadIdx.x == 0) {
            if (tile + gridDim.x < tiles) fetch(tile + gridDim.x, stage ^ 1);
            wait_until_read();    // of the tile before this one, so that `out` is free
        }
        __syncthreads();
        wait(&full[stage], parity);
        const int row = threadIdx.x / 8, column = threadIdx.x % 8;    // of blocks of 4 x 4
        float4 x[4];
        for (int i = 0; i < 4; ++i) x[i] = piece(in[stage], row * 4 + i, column);
        piece(out, column * 4 + 0, row) = make_float4(x[0].x, x[1].x, x[2].x, x[3].x);
        piece(out, column * 4 + 1, row) = make_float4(x[0].y, x[1].y, x[2].y, x[3].y);
        piece(out, column * 4 + 2, row) = make_float4(x[0].z, x[1].z, x[2].z, x[3].z);
        piece(out, column * 4 + 3, row) = make_float4(x[0].w, x[1].w, x[2].w, x[3].w);
        fence_shared();
        __syncthreads();    // all of `out` is there, and nobody reads `in`
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %3}], [%4];" ::"l"(&to),
                         "r"(tile / tiles_per_row * kSide), "r"(tile % tiles_per_row * kSide), "r"(0), "r"(shared_address(out))
                         : "memory");
            commit_stores();
        }
        if (stage ^= 1; stage == 0) parity ^= 1;
    }
    if (threadIdx.x == 0) wait_until_stored();
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 16384, repetitions = argc > 2 ? std::atoi(argv[2]) : 20;
    if (n < kSide || n % kSide) return std::fprintf(stderr, "usage: transpose [SIZE, a multiple of 32] [REPETITIONS]\n"), 2;
    std::vector<float> a(size_t(n) * n), b(a.size());
    Random random;
    for (float& x : a) x = random.number();
    float *const from = to_device(a), *const to = to_device(b);
    const CUtensorMap from_map = make_map(from, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, n, n, kSide, kSide);
    const CUtensorMap to_map = make_map(to, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, n, n, kSide, kSide);
    const int per_row = n / kSide, tiles = per_row * per_row;
    const auto launch = [&] {
        transpose<<<std::min(16 * processors(), tiles), kThreads>>>(from_map, to_map, per_row, tiles);
        check(cudaGetLastError());
    };
    launch();
    check(cudaMemcpy(b.data(), to, b.size() * 4, cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (size_t i = 0; i < size_t(n); ++i)
        for (size_t j = 0; j < size_t(n); ++j) wrong += b[j * n + i] != a[i * n + j];
    std::printf("%s: %zu of %zu elements differ\n", wrong ? "WRONG" : "ok", wrong, b.size());
    if (repetitions > 0) std::printf("%d: %.2f TB/s\n", n, 8.0 * n * n / milliseconds(repetitions, launch) / 1e9);
    return wrong ? 1 : 0;
}
