// ./program BLOCKS STAGES: a block, or the two of a cluster, multiplies eight tiles that its first block copies, in a ring of STAGES.
#include <cuda_runtime.h>

#include <cstdlib>

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void tiles(const int *in, int *out, int stages) {
    __shared__ __align__(1024) int tile[2][1024];
    __shared__ unsigned long long full[2];
    const int t = threadIdx.x;
    unsigned rank, size;
    asm("mov.u32 %0, %%cluster_ctarank; mov.u32 %1, %%cluster_nctarank;" : "=r"(rank), "=r"(size));
    if (t < 2) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full[t])) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    const auto copy = [&](int k) {
        const int s = k % stages;
        if (t || k >= 8) return;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(at(&full[s])) : "memory");
        if (size == 1)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];" ::"r"(at(tile[s])), "l"(in + 1024 * k), "r"(at(&full[s])) : "memory");
        else if (rank == 0)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 4096, [%2], %3;" ::"r"(at(tile[s])), "l"(in + 1024 * k), "r"(at(&full[s])), "h"((short)3) : "memory");
    };
    for (int k = 0; k < stages; k++) copy(k);
    unsigned sums[2] = {0, 0};
    for (int k = 0; k < 8; k++) {
        const int s = k % stages;
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(at(&full[s])), "r"(k / stages % 2) : "memory");
        const unsigned long long d = (unsigned long long)(at(tile[s]) >> 4) | 8ull << 16 | 16ull << 32;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, p, 1, 1, 0, 0; }" : "+r"(sums[0]), "+r"(sums[1]) : "l"(d), "l"(d));
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" : "+r"(sums[0]), "+r"(sums[1])::"memory");
        asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
        copy(k + stages);
    }
    tile[0][t % 64] = (int)(sums[0] + sums[1]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t) return;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out + 64 * blockIdx.x), "r"(at(tile[0])) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

int main(int, char **argv) {
    int *in, *out;
    cudaMalloc(&in, 8 * 4096), cudaMalloc(&out, 512);
    cudaMemset(in, 0, 8 * 4096);
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)atoi(argv[1]), cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = cluster.val.clusterDim.x, config.blockDim = 128, config.attrs = &cluster, config.numAttrs = 1;
    cudaLaunchKernelEx(&config, tiles, (const int *)in, out, atoi(argv[2]));
    return cudaDeviceSynchronize() != cudaSuccess;
}
