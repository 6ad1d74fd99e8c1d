// Clusters of blocks: their registers, barriers, shared memory and multicast.
#include "conformance.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void wait(void *object, int parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(at(object)), "r"(parity) : "memory");
}

__global__ void __cluster_dims__(2, 2, 1) places(unsigned *out) {
    const cg::cluster_group c = cg::this_cluster();
    unsigned *const o = out + 8 * (blockIdx.x + gridDim.x * blockIdx.y);
    unsigned id, count, rank, explicitly;
    asm volatile("mov.u32 %0, %%clusterid.x; mov.u32 %1, %%nclusterid.y; mov.u32 %2, %%cluster_ctarank;" : "=r"(id), "=r"(count), "=r"(rank));
    asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(explicitly));
    o[0] = c.block_rank(), o[1] = c.num_blocks(), o[2] = c.block_index().x, o[3] = c.block_index().y, o[4] = id, o[5] = count, o[6] = rank, o[7] = explicitly;
}
TEST(a_block_knows_its_place_in_a_cluster) {
    Array<unsigned> out(8 * 24);
    places<<<dim3(6, 4), 1>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) {
        const unsigned x = (unsigned)(i / 8 % 6), y = (unsigned)(i / 48), rank = x % 2 + y % 2 * 2;
        const unsigned want[8] = {rank, 4, x % 2, y % 2, x / 2, 2, rank, 1};
        return want[i % 8];
    });
}

// Each block reads its neighbour's shared memory and adds to it; twice, with barriers between.
__global__ void neighbours(int *out) {
    __shared__ int mine[32];
    cg::cluster_group c = cg::this_cluster();
    const int t = threadIdx.x, rank = (int)c.block_rank(), next = (rank + 1) % (int)c.num_blocks();
    mine[t] = 100 * rank + t;
    c.sync();
    int *const theirs = c.map_shared_rank(mine, next);
    const int seen = theirs[31 - t];
    c.sync();
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(at(&mine[t])), "r"(next));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(seen) : "memory");
    c.sync();
    atomicAdd(&theirs[0], 1);
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[32 * blockIdx.x + t] = mine[t];
    c.sync();
}
TEST(blocks_of_a_cluster_share_memory) {
    Array<int> out(32 * 12);
    cudaLaunchConfig_t config = {};
    config.gridDim = 12, config.blockDim = 32;
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 4, attribute.val.clusterDim.y = 1, attribute.val.clusterDim.z = 1;
    config.attrs = &attribute, config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, neighbours, out.device));
    // What a block sees at its neighbour, rank r, it stores there: so block r holds its own numbers, reversed.
    return finished() && equal(out.down(), [](size_t i) { return (int)(100 * (i / 32 % 4) + 31 - i % 32) + (i % 32 == 0 ? 32 : 0); });
}

// Block 0 copies a tile to all blocks; every block arrives at block 0's barrier object when it has used its tile.
__global__ void __cluster_dims__(4, 1, 1) multicast(const int *in, int *out, int rounds) {
    __shared__ __align__(128) int tile[32];
    __shared__ unsigned long long full, used;
    cg::cluster_group c = cg::this_cluster();
    const int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" ::"r"(at(&used)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    c.sync();
    for (int k = 0; k < rounds; k++) {
        if (t == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at(&full)) : "memory");
        if (t == 0 && c.block_rank() == 0) {
            if (k) wait(&used, (k - 1) % 2);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(at(tile)), "l"(in + 32 * k),
                         "r"(at(&full)), "h"((unsigned short)15) : "memory");
        }
        wait(&full, k % 2);
        out[32 * (rounds * blockIdx.x + k) + t] = tile[t];
        __syncwarp();
        if (t == 0)
            asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote]; }" ::"r"(at(&used)) : "memory");
    }
    c.sync();
}
TEST(a_multicast_reaches_every_block) {
    Array<int> in(32 * 5, [](size_t i) { return (int)noise(i); }, 0), out(32 * 5 * 8);
    multicast<<<8, 32>>>(in.device, out.device, 5);
    return finished() && equal(out.down(), [&](size_t i) { return in.host[i % 160]; });
}
