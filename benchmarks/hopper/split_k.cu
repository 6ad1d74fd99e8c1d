// C = A Bᵀ of bfloat16 with a long inner dimension: many blocks add to one tile of C, and the copy engine does the adding.
//
//   split_k [DEPTH] [REPETITIONS]        C is 512 x 512; prints the largest error, and TFLOP/s; exit 1 when wrong
//
// Theory of operation. C has only 32 tiles of 64 x 128, too few for a GPU, so the inner dimension is cut into slices, a
// block each. One group of four warps does everything: its first thread keeps kSlots steps of 32 columns on their way, wgmma
// multiplies what has arrived (rows of 64 bytes: the 64-byte swizzle; A and B both by rows). In the end, the sums go to shared
// memory and a reducing tensor copy adds them to C in the L2 cache.
//
// Build: nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a split_k.cu -o split_k

#include "common.cuh"

using namespace hopper;

constexpr int kSide = 512, kRows = 64, kColumns = 128, kDepth = 32, kSlots = 6, kThreads = 128;
constexpr int kABytes = kRows * kDepth * 2, kBBytes = kColumns * kDepth * 2, kSlotBytes = kABytes + kBBytes;
constexpr int kOutBytes = kRows * kColumns * 4, kSharedBytes = kSlots * kSlotBytes + kOutBytes + 1024;

__global__ void __launch_bounds__(kThreads)
add_slice(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
          const __grid_constant__ CUtensorMap c_map, int steps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ char unaligned[];
    __shared__ uint64_t full[kSlots];
    char* const out = unaligned + (1024 - shared_address(unaligned) % 1024) % 1024;
    char* const ring = out + kOutBytes;
    const int row = blockIdx.x % (kSide / kRows) * kRows, column = blockIdx.x / (kSide / kRows) * kColumns;
    const int first = blockIdx.y * steps;
    if (threadIdx.x == 0) {
        for (uint64_t& barrier : full) barrier_init(&barrier, 1);
        barrier_init_done();
    }
    __syncthreads();

    const auto fetch = [&](int step) {
        const int slot = step % kSlots;
        expect_bytes(&full[slot], kSlotBytes);
        copy_box(ring + slot * kSlotBytes, &a_map, (first + step) * kDepth, row, 0, 0, &full[slot]);
        copy_box(ring + slot * kSlotBytes + kABytes, &b_map, (first + step) * kDepth, column, 0, 0, &full[slot]);
    };
    if (threadIdx.x == 0)
        for (int step = 0; step < min(kSlots - 1, steps); ++step) fetch(step);
    float sums[kColumns / 2];
    for (int step = 0; step < steps; ++step) {
        const int slot = step % kSlots;
        wait(&full[slot], step / kSlots % 2);
        const uint64_t a = operand<32>(ring + slot * kSlotBytes, 16, 512), b = operand<32>(ring + slot * kSlotBytes + kABytes, 16, 512);
        pin(sums);
        begin_products();
#pragma unroll
        for (int k = 0; k < kDepth / 16; ++k) multiply<__nv_bfloat16, 0, 0>(sums, a + 2 * k, b + 2 * k, step > 0 || k > 0);
        commit_products();
        wait_products<1>();    // the step before this one: its slot may be filled again, when all warps are here
        pin(sums);
        __syncthreads();
        if (threadIdx.x == 0 && step + kSlots - 1 < steps) fetch(step + kSlots - 1);
    }
    wait_products<0>();
    pin(sums);

    // Four panels of 32 columns, swizzled as the map wants them.
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kColumns / 2; i += 2) {
        const int my_row = threadIdx.x / 32 * 16 + lane / 4 + i / 2 % 2 * 8, my_column = i / 4 * 8 + lane % 4 * 2;
        char* const place = out + my_column / 32 * (kRows * 128) + my_row * 128 +
                            (my_column % 32 / 4 ^ my_row % 8) * 16 + my_column % 4 * 4;
        *reinterpret_cast<float2*>(place) = make_float2(sums[i], sums[i + 1]);
    }
    fence_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int panel = 0; panel < kColumns / 32; ++panel)
            asm volatile(
                "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2, %3, %3}], [%4];" ::"l"(
                    &c_map),
                "r"(column + panel * 32), "r"(row), "r"(0), "r"(shared_address(out + panel * kRows * 128))
                : "memory");
        commit_stores();
        wait_until_stored();
    }
#endif
}

int main(int argc, char** argv) {
    const int depth = argc > 1 ? std::atoi(argv[1]) : 1 << 18, repetitions = argc > 2 ? std::atoi(argv[2]) : 20;
    if (depth < 256 || depth % 256) return std::fprintf(stderr, "usage: split_k [DEPTH, a multiple of 256] [REPETITIONS]\n"), 2;
    std::vector<__nv_bfloat16> a(size_t(kSide) * depth), b(a.size());
    std::vector<float> c(kSide * kSide);
    Random random;
    for (__nv_bfloat16& x : a) x = __nv_bfloat16(random.number());
    for (__nv_bfloat16& x : b) x = __nv_bfloat16(random.number());
    float* const sums = to_device(c);
    const CUtensorMap a_map = make_map(to_device(a), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, kSide, depth, kRows, kDepth);
    const CUtensorMap b_map = make_map(to_device(b), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, kSide, depth, kColumns, kDepth);
    const CUtensorMap c_map = make_map(sums, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, kSide, kSide, kRows, 32);
    check(cudaFuncSetAttribute(add_slice, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    int slices = 1;    // a power of two that leaves 4 steps or more to each
    while (slices < 32 && depth / kDepth / slices >= 8 && depth / kDepth % (2 * slices) == 0) slices *= 2;
    const auto launch = [&] {
        check(cudaMemsetAsync(sums, 0, c.size() * 4));
        const dim3 grid(kSide / kRows * (kSide / kColumns), slices);
        add_slice<<<grid, kThreads, kSharedBytes>>>(a_map, b_map, c_map, depth / kDepth / slices);
        check(cudaGetLastError());
    };
    launch();
    check(cudaMemcpy(c.data(), sums, c.size() * 4, cudaMemcpyDeviceToHost));
    double largest = 0.0;    // over the size of a sum of random signs
    for (int i = 0; i < 512; ++i) {
        const int row = random.bits() % kSide, column = random.bits() % kSide;
        double sum = 0.0;
        for (int k = 0; k < depth; ++k) sum += double(float(a[size_t(row) * depth + k])) * double(float(b[size_t(column) * depth + k]));
        const double error = std::fabs(c[row * kSide + column] - sum) / std::sqrt(double(depth));
        largest = std::isnan(error) ? INFINITY : std::max(largest, error);
    }
    const bool right = largest < 1e-3;
    std::printf("%s: largest error of 512 elements %.1e\n", right ? "ok" : "WRONG", largest);
    if (repetitions > 0) {
        const float ms = milliseconds(repetitions, launch);
        std::printf("%d: %.3f ms, %.0f TFLOP/s\n", depth, ms, 2.0 * kSide * kSide * depth / ms / 1e9);
    }
    return right ? 0 : 1;
}
