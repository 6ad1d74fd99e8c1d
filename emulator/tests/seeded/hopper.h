// Hopper's asynchronous instructions, one macro each, so that a program's own lines name what it does; and pairs of
// programs, one with a bug and its twin without, `correct_NAME`, whose result is right.
#pragma once
#include "seeded.h"

#define TWINS(name)                                                                                                          \
    template <bool BUG> static void run_##name();                                                                            \
    static Program entry_##name(#name, run_##name<true>), correct_##name("correct_" #name, run_##name<false>);               \
    template <bool BUG> static void run_##name()

#define AT(p) ((unsigned)__cvta_generic_to_shared(p))
typedef unsigned long long Barrier;

// ---- barrier objects
#define INIT(b, count) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(AT(b)), "r"(count) : "memory")
#define INIT_DONE() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define ARRIVE(b) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(AT(b)) : "memory")
#define ARRIVE_AT(b, rank)                                                                                                    \
    asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }" ::"r"(AT(b)), "r"(rank) : "memory")
#define EXPECT(b, bytes) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(AT(b)), "r"((int)(bytes)) : "memory")
#define WAIT(b, parity)                                                                                                      \
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(AT(b)), "r"(parity) : "memory")

// ---- bulk copies
#define LOAD(to, from, bytes, b)                                                                                             \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(AT(to)), "l"(from), "r"((int)(bytes)), "r"(AT(b)) : "memory")
#define MULTICAST(to, from, bytes, b, blocks)                                                                                \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(AT(to)), "l"(from), "r"(bytes), \
                 "r"(AT(b)), "h"((unsigned short)(blocks)) : "memory")
#define LOAD_BOX(to, map, x, y, b)                                                                                           \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(AT(to)), "l"(map), "r"(x), "r"(y), \
                 "r"(AT(b)) : "memory")
#define STORE(to, from, bytes) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(AT(from)), "r"(bytes) : "memory")
#define STORE_DONE() asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory")
#define STORE_READ() asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory")
#define PROXY_FENCE() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

// ---- products of a warpgroup: 64 x 16 halves by 16 x 8, in rows of 16 bytes without a swizzle
#define TILE_A 2048
#define TILE_B 256
#define PLAIN(p) ((unsigned long long)(AT(p) >> 4) | 8ull << 16 | 16ull << 32)
#define ADD_PRODUCT(d, a, b)                                                                                                 \
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory")
#define ADD_PRODUCT_OF_REGISTERS(d, a, b)                                                                                    \
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0; }" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory")
#define PRODUCT_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define PRODUCT_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define PRODUCT_WAIT(groups) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory")

// ---- clusters
#define CLUSTER_SYNC() asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory")
__device__ inline unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
#define READ_AT(value, p, rank)                                                                                              \
    asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.u32 %0, [a]; }" : "=r"(value) : "r"(AT(p)), "r"(rank) : "memory")

// ---- registers, and kernels that overlap
#define REGISTERS(how, count) asm volatile("setmaxnreg." #how ".sync.aligned.u32 %0;" ::"n"(count))
#define TRIGGER() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT_FOR_KERNEL() asm volatile("griddepcontrol.wait;" ::: "memory")

// ---- on the host
// One block of 64 threads, which may begin before the kernel before it has ended.
template <class... A> void launch_dependent(void (*kernel)(A...), A... arguments) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1, config.blockDim = 64, config.attrs = &attribute, config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, arguments...);
}
// 1, 2, 3, …
inline int *counting(int n) {
    std::vector<int> values((size_t)n);
    for (int i = 0; i < n; i++) values[(size_t)i] = i + 1;
    int *const p = fresh<int>((size_t)n);
    cudaMemcpy(p, values.data(), sizeof(int) * (size_t)n, cudaMemcpyHostToDevice);
    return p;
}
// Halves of 1 in the first `words` pairs, of 2 in the next, then 4, …
inline unsigned *powers(int tiles, int words) {
    std::vector<unsigned> values;
    for (int k = 0; k < tiles; k++) values.insert(values.end(), (size_t)words, 0x3c003c00u + 0x04000400u * (unsigned)k);
    unsigned *const p = fresh<unsigned>(values.size());
    cudaMemcpy(p, values.data(), sizeof(unsigned) * values.size(), cudaMemcpyHostToDevice);
    return p;
}
template <class T, class F> void expect_all(const T *out, int n, F value) {
    std::vector<T> values((size_t)n);
    if (cudaMemcpy(values.data(), out, sizeof(T) * (size_t)n, cudaMemcpyDeviceToHost) != cudaSuccess) return;
    for (int i = 0; i < n; i++)
        if (values[(size_t)i] != (T)value(i)) {
            printf("element %d is %g, expected %g\n", i, (double)values[(size_t)i], (double)value(i));
            wrong_results = 98;
            return;
        }
}
