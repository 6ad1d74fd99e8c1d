// The same matrix instructions on a GPU with sm_90a. A block executes one: a warp an mma.sync, or a warpgroup a wgmma with A in
// registers and B in shared memory, as two blocks of 8 columns by 16 bytes.
#include "forms.h"

#include <cuda_runtime.h>

#define D_F32 "{%0,%1,%2,%3}"
#define D_F16 "{%0,%1}"
#define A_4 "{%4,%5}"
#define A_8 "{%4,%5,%6,%7}"
#define B_4 "{%8}"
#define B_8 "{%8,%9}"
#define TRANSPOSED_F16 ", 0"
#define TRANSPOSED_BF16 ", 0"
#define TRANSPOSED_TF32 ""
#define TRANSPOSED_E4M3 ""
#define TRANSPOSED_E5M2 ""
#define SUMS "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
#define ROWS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])

#define EXECUTE_MMA(a_type, c_type, words, text) \
    asm volatile("mma.sync.aligned." text " " D_##c_type ", " A_##words ", " B_##words ", " D_##c_type ";" : SUMS : ROWS, "r"(b[0]), "r"(b[1]));
#define EXECUTE_WGMMA(a_type, c_type, words, text)                                                                     \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %9, 0;\nwgmma.fence.sync.aligned;\n"                            \
                 "wgmma.mma_async.sync.aligned." text " " D_##c_type ", " A_8 ", %8, add, 1, 1" TRANSPOSED_##a_type ";\n" \
                 "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}"                               \
                 : SUMS : ROWS, "l"(descriptor), "r"(1) : "memory");

enum { F16, BF16, TF32, E4M3, E5M2, F32 };
#define FORM(name, unit, a_type, b_type, c_type, k, words, text)                                                       \
    struct name {                                                                                                      \
        static constexpr int kWarps = unit == MMA ? 1 : 4, kWords = words;                                             \
        static constexpr bool kHalves = c_type == F16;                                                                 \
        static __device__ void execute(const unsigned (&a)[4], const unsigned (&b)[2], unsigned long long descriptor, unsigned (&d)[4]) { \
            EXECUTE_##unit(a_type, c_type, words, text)                                                                \
        }                                                                                                              \
    };
FORMS(FORM)

template <class Form> __global__ void instruction(const unsigned *rows, const unsigned *columns, const unsigned *c, unsigned *to) {
    constexpr int words = Form::kWords;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = blockIdx.x * Form::kWarps + threadIdx.x / 32;
    rows += warp * 16 * words, columns += blockIdx.x * COLUMNS * words, c += warp * 16 * COLUMNS, to += warp * 16 * COLUMNS;
    unsigned a[4] = {}, b[2] = {}, d[4] = {};
    for (int r = 0; r < words / 2; r++) a[r] = rows[(r % 2 * 8 + g) * words + r / 2 * 4 + t];
    for (int r = 0; r < words / 4; r++) b[r] = columns[g * words + r * 4 + t];
    for (int i = 0; i < 4; i++) {
        const unsigned element = c[(i / 2 * 8 + g) * COLUMNS + 2 * t + i % 2];
        if (Form::kHalves) d[i / 2] |= element << i % 2 * 16;
        else d[i] = element;
    }
    __shared__ alignas(128) unsigned blocks[2 * 8 * 4];
    for (int i = threadIdx.x; i < COLUMNS * words; i += blockDim.x) blocks[i % words / 4 * 32 + i / words * 4 + i % 4] = columns[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const unsigned long long start = __cvta_generic_to_shared(blocks) >> 4 & 0x3fff, step = 8 * 16 >> 4; // from block to block
    Form::execute(a, b, start | step << 16 | step << 32, d);
    for (int i = 0; i < 4; i++) to[(i / 2 * 8 + g) * COLUMNS + 2 * t + i % 2] = Form::kHalves ? d[i / 2] >> i % 2 * 16 & 0xffff : d[i];
}

struct Kernel { void (*run)(const unsigned *, const unsigned *, const unsigned *, unsigned *); int warps, words; };
static const Kernel kKernels[] = {
#define ENTRY(name, unit, a, b, c, k, words, text) {instruction<name>, name::kWarps, words},
    FORMS(ENTRY)
};

const char *run_on_the_gpu(int form, unsigned count, const unsigned *a, const unsigned *b, const unsigned *c, unsigned *d) {
    const Kernel &kernel = kKernels[form];
    const size_t tile = (size_t)count * kernel.warps * 16, sizes[4] = {tile * kernel.words * 4, (size_t)count * COLUMNS * kernel.words * 4, tile * COLUMNS * 4, tile * COLUMNS * 4};
    const unsigned *inputs[3] = {a, b, c};
    unsigned *device[4];
    for (int i = 0; i < 4; i++)
        if (cudaMalloc(&device[i], sizes[i]) != cudaSuccess) return cudaGetErrorString(cudaGetLastError());
    for (int i = 0; i < 3; i++) cudaMemcpy(device[i], inputs[i], sizes[i], cudaMemcpyHostToDevice);
    kernel.run<<<count, kernel.warps * 32>>>(device[0], device[1], device[2], device[3]);
    cudaMemcpy(d, device[3], sizes[3], cudaMemcpyDeviceToHost);
    for (unsigned *p : device) cudaFree(p);
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
