// C = A B of halves on tensor cores, for benchmarks/emulator.py: what a student's first good kernel looks like.
//
//   half_matmul mma|wmma f32|f16 SIZE
//   half_matmul wgmma f32 SIZE            built for sm_90a
//
// Theory of operation. A block of 4 warps makes 64 × 64 elements of C, a warp 32 × 32 of these. Tiles of A and B of 32
// columns, or rows, go through shared memory, whose rows have 8 halves more than they need, against bank conflicts. `mma`
// fetches fragments with ldmatrix and multiplies with mma.sync.m16n8k16; `wmma` is the same through nvcuda::wmma. Sums are
// kept in f32 or in f16. Elements are -1, 0 and 1, so that sums are exact in both. With `wgmma` a block makes the same 64 × 64
// elements by m64n64k16, four for tiles of 64 columns, or rows; both operands lie in shared memory as 8 × 8 blocks of 128
// adjacent bytes, with B by columns, as it is in memory too.
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace nvcuda;

constexpr int kTile = 64, kDepth = 32, kPadding = 8;

struct Tiles {
    __align__(16) half a[kTile][kDepth + kPadding], b[kDepth][kTile + kPadding];
};

__device__ void fetch(Tiles &s, const half *a, const half *b, int n, int row, int column, int k) {
    for (int i = threadIdx.x; i < kTile * kDepth / 8; i += blockDim.x) {
        const int r = i / (kDepth / 8), c = i % (kDepth / 8) * 8, r2 = i / (kTile / 8), c2 = i % (kTile / 8) * 8;
        *reinterpret_cast<uint4 *>(&s.a[r][c]) = *reinterpret_cast<const uint4 *>(&a[(row + r) * n + k + c]);
        *reinterpret_cast<uint4 *>(&s.b[r2][c2]) = *reinterpret_cast<const uint4 *>(&b[(k + r2) * n + column + c2]);
    }
}

__device__ unsigned shared_address(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply(unsigned (&c)[2], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                 : "+r"(c[0]), "+r"(c[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void put(float *to, int n, const float (&c)[4]) {
    for (int i = 0; i < 4; i++) to[i / 2 * 8 * n + i % 2] = c[i];
}
__device__ void put(half *to, int n, const unsigned (&c)[2]) {
    for (int i = 0; i < 2; i++) *reinterpret_cast<unsigned *>(&to[i * 8 * n]) = c[i];
}

template <class Sum, class Fragment> __global__ void mma_matmul(const half *a, const half *b, Sum *c, int n) {
    __shared__ Tiles s;
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int wr = warp / 2 * 32, wc = warp % 2 * 32;
    Fragment sums[2][4] = {};
    for (int k = 0; k < n; k += kDepth) {
        fetch(s, a, b, n, row, column, k);
        __syncthreads();
        for (int x = 0; x < kDepth; x += 16) {
            unsigned fa[2][4], fb[4][2];
            for (int i = 0; i < 2; i++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                             : "r"(shared_address(&s.a[wr + 16 * i + lane % 16][x + lane / 16 * 8])));
            for (int j = 0; j < 4; j += 2)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j + 1][0]), "=r"(fb[j + 1][1])
                             : "r"(shared_address(&s.b[x + lane % 16][wc + 8 * j + lane / 16 * 8])));
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) multiply(sums[i][j], fa[i], fb[j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            put(&c[(row + wr + 16 * i + lane / 4) * n + column + wc + 8 * j + lane % 4 * 2], n, sums[i][j]);
}

template <class Sum> __global__ void wmma_matmul(const half *a, const half *b, Sum *c, int n) {
    __shared__ Tiles s;
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile, warp = threadIdx.x / 32;
    const int wr = warp / 2 * 32, wc = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sums[2][2];
    for (auto &line : sums)
        for (auto &sum : line) wmma::fill_fragment(sum, Sum(0.0f));
    for (int k = 0; k < n; k += kDepth) {
        fetch(s, a, b, n, row, column, k);
        __syncthreads();
        for (int x = 0; x < kDepth; x += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb[2];
            for (int i = 0; i < 2; i++) wmma::load_matrix_sync(fa[i], &s.a[wr + 16 * i][x], kDepth + kPadding);
            for (int j = 0; j < 2; j++) wmma::load_matrix_sync(fb[j], &s.b[x][wc + 16 * j], kTile + kPadding);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++) wmma::mma_sync(sums[i][j], fa[i], fb[j], sums[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            wmma::store_matrix_sync(&c[(row + wr + 16 * i) * n + column + wc + 16 * j], sums[i][j], n, wmma::mem_row_major);
}

struct BlockedTiles {
    __align__(128) uint4 a[kTile * kTile / 8], b[kTile * kTile / 8]; // an 8 × 8 block after the other along k
};

__device__ void fetch_blocked(uint4 *to, const half *from, int n, int row, int k) {
    for (int i = threadIdx.x; i < kTile * kTile / 8; i += blockDim.x) {
        const int r = i / (kTile / 8), c = i % (kTile / 8);
        to[(r / 8 * (kTile / 8) + c) * 8 + r % 8] = *reinterpret_cast<const uint4 *>(&from[(row + r) * n + k + 8 * c]);
    }
}

#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)
__device__ void multiply_by_warpgroup(float (&d)[32], const uint4 *a, const uint4 *b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr unsigned long long kAlongK = 128 >> 4, kAlongRows = kTile / 8 * kAlongK;
    const unsigned long long steps = kAlongK << 16 | kAlongRows << 32;
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
                 : SUMS16(0), SUMS16(16) : "l"(shared_address(a) >> 4 | steps), "l"(shared_address(b) >> 4 | steps));
#endif
}
__device__ void wgmma_begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ void wgmma_end() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
#endif
}

__global__ void wgmma_matmul(const half *a, const half *b, float *c, int n) {
    __shared__ BlockedTiles s;
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sums[32] = {};
    for (int k = 0; k < n; k += kTile) {
        fetch_blocked(s.a, a, n, row, k), fetch_blocked(s.b, b, n, column, k);
        wgmma_begin();
        for (int x = 0; x < kTile / 8; x += 2) multiply_by_warpgroup(sums, &s.a[8 * x], &s.b[8 * x]);
        wgmma_end();
    }
    for (int i = 0; i < 32; i++)
        c[(row + 16 * warp + i / 2 % 2 * 8 + lane / 4) * n + column + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

static float element(int i, int j) { return static_cast<float>((i * 7 + j * 5 + i * j) % 3 - 1); }

enum Instruction { kMma, kWmma, kWgmma };
template <class Sum, class Fragment> int run(Instruction instruction, int n) {
    std::vector<half> a(n * n), b(n * n);
    std::vector<Sum> c(n * n);
    for (int i = 0; i < n * n; i++) a[i] = __float2half(element(i / n, i % n)), b[instruction == kWgmma ? i % n * n + i / n : i] = __float2half(element(i % n + 1, i / n));
    half *da, *db;
    Sum *dc;
    cudaMalloc(&da, a.size() * sizeof(half)), cudaMalloc(&db, b.size() * sizeof(half)), cudaMalloc(&dc, c.size() * sizeof(Sum));
    cudaMemcpy(da, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice);
    const dim3 grid(n / kTile, n / kTile);
    if (instruction == kWgmma) wgmma_matmul<<<grid, 128>>>(da, db, reinterpret_cast<float *>(dc), n);
    else if (instruction == kWmma) wmma_matmul<Sum><<<grid, 128>>>(da, db, dc, n);
    else mma_matmul<Sum, Fragment><<<grid, 128>>>(da, db, dc, n);
    cudaMemcpy(c.data(), dc, c.size() * sizeof(Sum), cudaMemcpyDeviceToHost);
    if (cudaGetLastError() != cudaSuccess) return 2;
    for (int i = 0; i < n; i += n / 8 + 1)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int k = 0; k < n; k++) sum += element(i, k) * element(j + 1, k);
            if (static_cast<float>(c[i * n + j]) != sum) return printf("element %d, %d: %g, expected %g\n", i, j, static_cast<float>(c[i * n + j]), sum), 1;
        }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: %s mma|wmma|wgmma f32|f16 SIZE\n", argv[0]), 99;
    const Instruction instruction = !strcmp(argv[1], "wgmma") ? kWgmma : !strcmp(argv[1], "wmma") ? kWmma : kMma;
    const int n = atoi(argv[3]);
    return strcmp(argv[2], "f16") ? run<float, float[4]>(instruction, n) : run<half, unsigned[2]>(instruction, n);
}
