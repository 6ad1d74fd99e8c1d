// Mistakes with Hopper's asynchronous instructions, each at the line marked with its name: `./program NAME`.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void expect(void *object, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(object)), "r"(bytes) : "memory");
}
__device__ void wait(void *object, int parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(at(object)), "r"(parity) : "memory");  // wrong_bytes
}
__device__ void load(void *to, const void *from, int bytes, void *object) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)), "l"(from), "r"(bytes), "r"(at(object)) : "memory");
}

__global__ void wrong_bytes(const int *in) {
    __shared__ __align__(128) int tile[64];
    __shared__ unsigned long long full;
    if (threadIdx.x) return;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    expect(&full, 512);
    load(tile, in, 256, &full);
    wait(&full, 0);
}

// early: the tile is multiplied before its barrier is waited for. late: it is copied anew before the product is waited for.
__global__ void tiles(const int *in, int *out, int early) {
    __shared__ __align__(1024) int tile[1024];
    __shared__ unsigned long long full;
    const int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
        expect(&full, 4096);
        load(tile, in, 4096, &full);
    }
    __syncthreads();
    if (!early) wait(&full, 0);
    const unsigned long long d = (unsigned long long)(at(tile) >> 4) | 8ull << 16 | 16ull << 32;
    unsigned sums[2] = {0, 0};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, p, 1, 1, 0, 0; }" : "+r"(sums[0]), "+r"(sums[1]) : "l"(d), "l"(d));  // early late
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (t == 0 && !early) {
        expect(&full, 4096);
        load(tile, in, 4096, &full);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("" : "+r"(sums[0]), "+r"(sums[1])::"memory");
    out[t] = (int)(sums[0] + sums[1]);
    wait(&full, !early);
}

__global__ void __cluster_dims__(2, 1, 1) peer_left(int *out) {
    __shared__ int mine;
    unsigned rank, value;
    mine = (int)threadIdx.x;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (rank == 0) return;
    for (int i = 0; i < 200000; i++) asm volatile("" ::: "memory");
    asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %1, 0; ld.shared::cluster.u32 %0, [a]; }" : "=r"(value) : "r"(at(&mine)) : "memory");  // peer_left
    out[0] = (int)value;
}

int main(int, char **argv) {
    int *in, *out;
    cudaMalloc(&in, 4096), cudaMalloc(&out, 4096);
    cudaMemset(in, 0, 4096);
    if (strcmp(argv[1], "wrong_bytes") == 0) wrong_bytes<<<1, 32>>>(in);
    if (strcmp(argv[1], "early") == 0) tiles<<<1, 128>>>(in, out, 1);
    if (strcmp(argv[1], "late") == 0) tiles<<<1, 128>>>(in, out, 0);
    if (strcmp(argv[1], "peer_left") == 0) peer_left<<<2, 1>>>(out);
    return cudaDeviceSynchronize() != cudaSuccess;
}
