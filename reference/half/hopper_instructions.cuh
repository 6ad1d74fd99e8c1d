// Hopper's own instructions: barriers that count bytes, tensor copies (TMA), products of four warps (wgmma).
//
// Theory of operation
//
//   Three kinds of workers run side by side on Hopper: threads, the copy engine and the tensor cores. The last two are
//   started by a thread and then go on by themselves, so that every hand-over of data needs a signal:
//
//   - A copy signals an mbarrier in shared memory: the thread that starts it announces the bytes (`expect_bytes`), the
//     engine counts them off, and whoever calls `wait` with the parity of that phase goes on when all are there.
//     Parities alternate 0, 1, 0, 1: a barrier that has never been used counts as past its phase of parity 1.
//   - A product signals nobody. The warps that started it commit it to a group and wait until all but the youngest n
//     groups are done.
//
//   Both read and write shared memory as the "asynchronous proxy". What ordinary stores wrote there is visible to it
//   only after `fence_shared`.
//
//   Layout of a tile in shared memory: panels of 64 columns of halves, that is rows of 128 bytes. Within each group
//   of 8 rows, the 16-byte piece c of row r lies at place c ^ r ("128-byte swizzle"), so that 8 pieces of a column,
//   which is what a tensor core fetches at a time, lie in 8 different sets of banks. The copy engine stores tiles this
//   way and wgmma reads them this way. Panels of 32 columns have rows of 64 bytes, and piece c at c ^ (r / 2).
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace hopper {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return uint32_t(__cvta_generic_to_shared(pointer));
}

// ------------------------------------------------------------------------------------------------- mbarriers

__device__ __forceinline__ void barrier_init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Makes the barriers that this thread initialised visible to the copy engine.
__device__ __forceinline__ void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void expect_bytes(uint64_t* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void wait(uint64_t* barrier, int parity) {
    asm volatile(
        "{.reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
        "@!done bra again;}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// Ordinary stores of this thread to shared memory become visible to copies and products that start later.
__device__ __forceinline__ void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// -------------------------------------------------------------------------------------------------- registers

template <int Count>
__device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

template <int Count>
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

// ------------------------------------------------------------------------------------------------------ copies

// The box at (column, row, head, batch) of the tensor that `map` describes. Elements outside the tensor arrive as 0.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap* map, int column, int row, int head, int batch,
                                         uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
        "[%6];" ::"r"(shared_address(to)),
        "l"(map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(shared_address(barrier))
        : "memory");
}

// Adjacent bytes, 16 or a multiple of that.
__device__ __forceinline__ void copy_bytes(void* to, const void* from, int bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// ---------------------------------------------------------------------------------------------------- products

// Where and how wgmma finds a matrix of halves in shared memory. `stride` is from 8 rows to the next 8; `leading`, for
// matrices that are read by columns, from one panel to the next.
template <int PanelColumns>
__device__ __forceinline__ uint64_t operand(const void* start, int leading_bytes, int stride_bytes) {
    static_assert(PanelColumns == 64 || PanelColumns == 32, "rows of 128 or 64 bytes");
    constexpr uint64_t swizzle = PanelColumns == 64 ? 1 : 2;
    return uint64_t((shared_address(start) & 0x3ffff) >> 4) | uint64_t(leading_bytes >> 4) << 16 |
           uint64_t(stride_bytes >> 4) << 32 | swizzle << 62;
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int Pending>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Nothing that uses these registers may be moved across this point by the compiler. Needed on both sides of a product:
// operands must have their values before begin_products, and sums must not be read before wait_products.
template <int Count>
__device__ __forceinline__ void pin(float (&registers)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

template <int Count>
__device__ __forceinline__ void pin(uint32_t (&registers)[Count][4]) {
#pragma unroll
    for (int i = 0; i < Count; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) asm volatile("" : "+r"(registers[i][j])::"memory");
}

// Four neighbours hold 2 columns each of 4 chunks of 8 columns, as pairs of halves; then they hold a chunk each, which
// is 16 bytes to store at once.
__device__ __forceinline__ void exchange_chunks(uint32_t (&word)[4]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
        for (int low = 0; low < 4; ++low) {
            if (low & bit) continue;
            const bool upper = lane & bit;
            const uint32_t other = __shfl_xor_sync(0xffffffffu, upper ? word[low] : word[low + bit], bit);
            if (upper)
                word[low] = other;
            else
                word[low + bit] = other;
        }
}

// D (64 x N, in registers) = A B or += A B, with 16 columns of A and 16 rows of B. A comes from registers or, as a
// descriptor, from shared memory; B from shared memory. `TransposeB`: B lies there by rows (its columns adjacent), else
// by columns. The same for `TransposeA`. N/2 registers per thread hold D, so one function for each N.
#define SUMS8(d, i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])

#define LIST16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SUMS16(d) SUMS8(d, 0)
#define LIST32 LIST16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SUMS32(d) SUMS16(d), SUMS8(d, 8)
#define LIST48 LIST32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define SUMS48(d) SUMS32(d), SUMS8(d, 16)
#define LIST64 LIST48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS64(d) SUMS48(d), SUMS8(d, 24)
#define LIST80 LIST64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define SUMS80(d) SUMS64(d), SUMS8(d, 32)
#define LIST96 LIST80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define SUMS96(d) SUMS80(d), SUMS8(d, 40)
#define LIST112 LIST96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define SUMS112(d) SUMS96(d), SUMS8(d, 48)
#define LIST128 LIST112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define SUMS128(d) SUMS112(d), SUMS8(d, 56)
#define LIST144 LIST128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define SUMS144(d) SUMS128(d), SUMS8(d, 64)
#define LIST160 LIST144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define SUMS160(d) SUMS144(d), SUMS8(d, 72)
#define LIST176 LIST160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define SUMS176(d) SUMS160(d), SUMS8(d, 80)
#define LIST192 LIST176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define SUMS192(d) SUMS176(d), SUMS8(d, 88)
#define LIST208 LIST192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define SUMS208(d) SUMS192(d), SUMS8(d, 96)
#define LIST224 LIST208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define SUMS224(d) SUMS208(d), SUMS8(d, 104)
#define LIST240 LIST224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define SUMS240(d) SUMS224(d), SUMS8(d, 112)
#define LIST256 LIST240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS256(d) SUMS240(d), SUMS8(d, 120)

#define WGMMA_TYPED(N, TYPE, OPERAND_A, B, P, TA, TB, ...)                                                         \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" #P ", 0;\n"                                                    \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" LIST##N "}, " OPERAND_A      \
                 ", %" #B ", p, 1, 1" TA ", %" #TB ";}"                                                            \
                 : SUMS##N(d)                                                                                      \
                 : __VA_ARGS__)

// The numbers are those of the operands that follow the N/2 sums.
#define WGMMA(N, I0, I1, I2, I3, I4, I5, I6)                                                                       \
    template <class Half, int TransposeB>                                                                          \
    __device__ __forceinline__ void multiply(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, bool add) {    \
        if constexpr (std::is_same_v<Half, __half>)                                                     \
            WGMMA_TYPED(N, "f16", "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, "", I6, "r"(a[0]),           \
                        "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)), "n"(TransposeB));                  \
        else                                                                                                       \
            WGMMA_TYPED(N, "bf16", "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, "", I6, "r"(a[0]),          \
                        "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)), "n"(TransposeB));                  \
    }                                                                                                              \
    template <class Half, int TransposeA, int TransposeB>                                                          \
    __device__ __forceinline__ void multiply(float (&d)[N / 2], uint64_t a, uint64_t b, bool add) {                \
        if constexpr (std::is_same_v<Half, __half>)                                                                     \
            WGMMA_TYPED(N, "f16", "%" #I0, I1, I2, ", %" #I3, I4, "l"(a), "l"(b), "r"(int(add)), "n"(TransposeA),  \
                        "n"(TransposeB));                                                                          \
        else                                                                                                       \
            WGMMA_TYPED(N, "bf16", "%" #I0, I1, I2, ", %" #I3, I4, "l"(a), "l"(b), "r"(int(add)), "n"(TransposeA), \
                        "n"(TransposeB));                                                                          \
    }

WGMMA(32, 16, 17, 18, 19, 20, 21, 22)
WGMMA(48, 24, 25, 26, 27, 28, 29, 30)
WGMMA(64, 32, 33, 34, 35, 36, 37, 38)
WGMMA(80, 40, 41, 42, 43, 44, 45, 46)
WGMMA(96, 48, 49, 50, 51, 52, 53, 54)
WGMMA(112, 56, 57, 58, 59, 60, 61, 62)
WGMMA(128, 64, 65, 66, 67, 68, 69, 70)
WGMMA(144, 72, 73, 74, 75, 76, 77, 78)
WGMMA(160, 80, 81, 82, 83, 84, 85, 86)
WGMMA(176, 88, 89, 90, 91, 92, 93, 94)
WGMMA(192, 96, 97, 98, 99, 100, 101, 102)
WGMMA(208, 104, 105, 106, 107, 108, 109, 110)
WGMMA(224, 112, 113, 114, 115, 116, 117, 118)
WGMMA(240, 120, 121, 122, 123, 124, 125, 126)
WGMMA(256, 128, 129, 130, 131, 132, 133, 134)

}    // namespace hopper
