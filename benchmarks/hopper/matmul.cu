// C = A B of halves on Hopper's tensor cores: what a student's best kernel looks like, and a test of the emulator.
//
//   matmul [SIZE] [REPETITIONS]        prints the largest error of 4096 elements, and TFLOP/s; exit 1 when wrong
//
// Theory of operation. A block makes 128 x 256 elements of C: two groups of four warps with 64 rows each, whose sums fill
// 128 registers of every thread. One thread of a third group does nothing but start tensor copies, four steps of 64 columns
// of A ahead. Two blocks are a cluster: they make neighbouring tiles of the same columns, so that both need the same piece
// of B; each fetches one half of it, for both (multicast), and the traffic from the L2 cache falls by a third. A slot of
// the ring may be overwritten when the warps of both blocks have read it: they arrive at the barriers of both.
//
// The grid is persistent, one cluster for two multiprocessors, and walks over C in stripes of kStripe tiles, so that
// tiles that are made at the same time share rows of A and columns of B in the L2 cache.
//
// Build: nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a matmul.cu -o matmul

#include "common.cuh"

using namespace hopper;

constexpr int kGroups = 2, kRows = 64 * kGroups, kColumns = 256, kDepth = 64, kSlots = 4, kCluster = 2, kStripe = 8;
constexpr int kPanel = 64, kThreads = 128 * (kGroups + 1);
constexpr int kABytes = kRows * kDepth * 2, kBBytes = kDepth * kColumns * 2, kSlotBytes = kABytes + kBBytes;
constexpr int kPanelBytes = kDepth * kPanel * 2;    // 64 rows of B, 64 columns
constexpr int kSharedBytes = kSlots * kSlotBytes + 1024;

// Arrives at the barrier at the same place in the shared memory of block `rank` of the cluster. No scope is named: with
// release.cluster, every arrival is a fence for all of memory. Without it, and with wider stores, 8192³ went from 545 to 774
// TFLOP/s on an H200. Nothing was stored that would have to be released; the products that read the slot are done.
__device__ __forceinline__ void arrive_at(uint64_t* barrier, int rank) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address_at(barrier, rank)) : "memory");
}

// As copy_box, to the same place in all blocks of `mask`; each block's own barrier learns of the bytes.
__device__ __forceinline__ void copy_to_all(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier,
                                            uint16_t mask) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3, %4, %4}], [%5], %6;" ::"r"(shared_address(to)),
        "l"(map), "r"(column), "r"(row), "r"(0), "r"(shared_address(barrier)), "h"(mask)
        : "memory");
}

struct Barriers {
    uint64_t full[kSlots], empty[kSlots];
};

// Pair `i` of tiles: the first row and column of the tile of this block.
struct Place {
    int row, column;
    __device__ Place(int i, int pair_rows, int pair_columns, int rank) {
        const int per_stripe = kStripe * pair_columns, stripe = i / per_stripe, rest = i % per_stripe;
        const int height = min(kStripe, pair_rows - stripe * kStripe);
        row = ((stripe * kStripe + rest % height) * kCluster + rank) * kRows;
        column = rest / height * kColumns;
    }
};

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
multiply_matrices(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, __half* c, int n) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ char unaligned[];
    __shared__ Barriers barriers;
    char* const ring = unaligned + (1024 - shared_address(unaligned) % 1024) % 1024;
    const int rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (int i = 0; i < kSlots; ++i) {
            barrier_init(&barriers.full[i], 1);
            barrier_init(&barriers.empty[i], 4 * kGroups * kCluster);
        }
        barrier_init_done();
    }
    cluster_sync();    // nobody copies to a block whose barriers are not ready

    const int pair_rows = n / (kRows * kCluster), pair_columns = n / kColumns, steps = n / kDepth;
    const int pairs = pair_rows * pair_columns, first = blockIdx.x / kCluster, stride = gridDim.x / kCluster;
    const int group = threadIdx.x / 128 - 1;
    int slot = 0, parity = 0;
    if (group < 0) {
        give_registers<40>();
        if (threadIdx.x == 0) {
            for (int pair = first; pair < pairs; pair += stride) {
                const Place place(pair, pair_rows, pair_columns, rank);
                for (int step = 0; step < steps; ++step) {
                    uint64_t* const full = &barriers.full[slot];
                    char* const a = ring + slot * kSlotBytes;
                    wait(&barriers.empty[slot], parity ^ 1);
                    expect_bytes(full, kSlotBytes);    // the half of B that the other block fetches as well
                    copy_box(a, &a_map, step * kDepth, place.row, 0, 0, full);
                    for (int i = 0; i < kColumns / kPanel / kCluster; ++i) {
                        const int panel = rank * (kColumns / kPanel / kCluster) + i;
                        copy_to_all(a + kABytes + panel * kPanelBytes, &b_map, place.column + panel * kPanel, step * kDepth,
                                    full, (1 << kCluster) - 1);
                    }
                    if (++slot == kSlots) slot = 0, parity ^= 1;
                }
            }
        }
    } else {
        take_registers<232>();
        const int lane = threadIdx.x % 32;
        const uint64_t a_base = operand<kPanel>(ring + group * 64 * kPanel * 2, 16, 1024);
        const uint64_t b_base = operand<kPanel>(ring + kABytes, kPanelBytes, 1024);
        for (int pair = first; pair < pairs; pair += stride) {
            const Place place(pair, pair_rows, pair_columns, rank);
            float sums[kColumns / 2];
            int last_slot = 0;
            for (int step = 0; step < steps; ++step) {
                wait(&barriers.full[slot], parity);
                pin(sums);
                begin_products();
#pragma unroll
                for (int k = 0; k < kDepth / 16; ++k)
                    multiply<__half, 0, 1>(sums, a_base + slot * (kSlotBytes / 16) + k * 2,
                                           b_base + slot * (kSlotBytes / 16) + k * 128, step > 0 || k > 0);
                commit_products();
                wait_products<1>();    // the step before this one has been read
                pin(sums);
                if (step > 0 && lane < kCluster) arrive_at(&barriers.empty[last_slot], lane);
                last_slot = slot;
                if (++slot == kSlots) slot = 0, parity ^= 1;
            }
            wait_products<0>();
            pin(sums);
            if (lane < kCluster) arrive_at(&barriers.empty[last_slot], lane);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const int row = place.row + group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * r;
                __half* const to = c + size_t(row) * n + place.column + lane % 4 * 8;
#pragma unroll
                for (int chunk = 0; chunk < kColumns / 8; chunk += 4) {
                    uint32_t word[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const int at = 4 * (chunk + i) + 2 * r;
                        const __half2 pair = __floats2half2_rn(sums[at], sums[at + 1]);
                        word[i] = *reinterpret_cast<const uint32_t*>(&pair);
                    }
                    exchange_chunks(word);
                    *reinterpret_cast<uint4*>(to + chunk * 8) = make_uint4(word[0], word[1], word[2], word[3]);
                }
            }
        }
    }
    __syncwarp();
    cluster_sync();    // a block must not end while the other may still arrive at its barriers or copy to it
#endif
}

// ------------------------------------------------------------------------------------------------------ the host

int main(int argc, char** argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 8192, repetitions = argc > 2 ? std::atoi(argv[2]) : 20;
    if (n < 256 || n % 256) return std::fprintf(stderr, "usage: matmul [SIZE, a multiple of 256] [REPETITIONS]\n"), 2;
    const size_t elements = size_t(n) * n;
    std::vector<__half> host[3] = {std::vector<__half>(elements), std::vector<__half>(elements), std::vector<__half>(elements)};
    Random random;
    for (int matrix = 0; matrix < 2; ++matrix)
        for (__half& x : host[matrix]) x = __half(random.number());
    __half* const device[3] = {to_device(host[0]), to_device(host[1]), to_device(host[2])};
    const int tiles = n / kRows * (n / kColumns), blocks = std::min(processors() / kCluster * kCluster, tiles);
    const CUtensorMap a_map = make_map(device[0], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, n, n, kRows, kDepth);
    const CUtensorMap b_map = make_map(device[1], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, n, n, kDepth, kPanel);
    check(cudaFuncSetAttribute(multiply_matrices, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    const auto launch = [&] {
        multiply_matrices<<<blocks, kThreads, kSharedBytes>>>(a_map, b_map, device[2], n);
        check(cudaGetLastError());
    };
    launch();
    check(cudaMemcpy(host[2].data(), device[2], elements * 2, cudaMemcpyDeviceToHost));

    double largest = 0.0;    // over the size of the sum that was rounded to a half
    for (int i = 0; i < 4096; ++i) {
        const int row = random.bits() % n, column = random.bits() % n;
        double sum = 0.0;
        for (int k = 0; k < n; ++k)
            sum += double(float(host[0][size_t(row) * n + k])) * double(float(host[1][size_t(k) * n + column]));
        const double got = float(host[2][size_t(row) * n + column]);
        const double error = std::fabs(got - sum) / (std::fabs(sum) + std::sqrt(double(n)) / 16);
        largest = std::isnan(error) ? INFINITY : std::max(largest, error);
    }
    const bool right = largest < 1.0 / 1024;
    std::printf("%s: largest relative error of 4096 elements %.1e\n", right ? "ok" : "WRONG", largest);

    if (repetitions > 0) {
        const float ms = milliseconds(repetitions, launch);
        std::printf("%d: %.3f ms, %.0f TFLOP/s\n", n, ms, 2.0 * n * n * n / ms / 1e9);
    }
    return right ? 0 : 1;
}
