// Barrier objects (mbarrier): cuda::barrier, cuda::pipeline, and the instructions themselves.
#include "conformance.h"

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init

static int value(size_t i) { return (int)(noise(i) & 0xffffff); }
__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Each thread passes its element to the next one, round after round.
__global__ void rotation(int *out, int rounds) {
    __shared__ Barrier full, empty;
    __shared__ int s[96];
    int t = threadIdx.x, mine = t;
    if (t == 0) init(&full, 96), init(&empty, 96);
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        s[t] = mine;
        full.arrive_and_wait();
        mine = s[(t + 1) % 96];
        Barrier::arrival_token token = empty.arrive();
        empty.wait(cuda::std::move(token));
    }
    out[t] = mine;
}
TEST(barrier_objects_keep_rounds_apart) {
    Array<int> out(96);
    rotation<<<1, 96>>>(out.device, 7);
    return finished() && equal(out.down(), [](size_t i) { return (i + 7) % 96; });
}

// Warp 0 fills two buffers in turn; the others read them and arrive, but never wait for each other.
__global__ void producer_and_consumers(const int *in, int *out, int tiles) {
    __shared__ Barrier full[2], empty[2];
    __shared__ int s[2][32];
    if (threadIdx.x < 2) init(&full[threadIdx.x], 128), init(&empty[threadIdx.x], 128);
    __syncthreads();
    int lane = threadIdx.x % 32;
    for (int k = 0; k < tiles; k++) {
        int b = k % 2;
        if (threadIdx.x < 32) {
            if (k >= 2) empty[b].arrive_and_wait();
            s[b][lane] = in[k * 32 + lane];
            (void)full[b].arrive();
        } else {
            full[b].arrive_and_wait();
            out[(k * 3 + threadIdx.x / 32 - 1) * 32 + lane] = s[b][31 - lane];
            if (k + 2 < tiles) (void)empty[b].arrive();
        }
    }
}
TEST(a_producer_and_its_consumers) {
    Array<int> in(5 * 32, value, 0), out(5 * 96);
    producer_and_consumers<<<1, 128>>>(in.device, out.device, 5);
    return finished() && equal(out.down(), [](size_t i) { return value(i / 96 * 32 + 31 - i % 32); });
}

__global__ void instructions(unsigned long long *out) {
    __shared__ unsigned long long object;
    unsigned a = shared_address(&object);
    unsigned long long token, last;
    unsigned left, before, after;
    if (threadIdx.x) return;
    asm volatile("mbarrier.init.shared.b64 [%0], 5;" ::"r"(a) : "memory");
    asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 2;" : "=l"(token) : "r"(a) : "memory");
    asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(token) : "r"(a) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(token));
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(before) : "r"(a) : "memory");
    asm volatile("mbarrier.arrive.shared.b64 _, [%0]; mbarrier.arrive.shared.b64 %1, [%0];" : "+r"(a), "=l"(last)::"memory");
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(after) : "r"(a), "l"(last) : "memory");
    out[0] = left, out[1] = before, out[2] = after;
    for (int i = 0; i < 4; i++) asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(a) : "memory");
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 1; selp.u32 %0, 1, 0, p; }" : "=r"(after) : "r"(a) : "memory");
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(a) : "memory");
    out[3] = after;
}
TEST(one_arrival_less_after_a_drop) {
    Array<unsigned long long> out(4);
    instructions<<<1, 32>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) { return std::vector<int>{3, 0, 1, 1}[i]; });
}

__global__ void copies_with_a_barrier(const int4 *in, int *out) {
    __shared__ alignas(16) int4 s[64];
    __shared__ Barrier bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, 64);
    block.sync();
    cuda::memcpy_async(block, s, in, cuda::aligned_size_t<16>(sizeof s), bar);
    bar.arrive_and_wait();
    out[threadIdx.x] = s[63 - threadIdx.x].z;
}
TEST(a_barrier_object_waits_for_copies) {
    Array<int> in(256, value, 0), out(64);
    copies_with_a_barrier<<<1, 64>>>((const int4 *)in.device, out.device);
    return finished() && equal(out.down(), [](size_t i) { return value((63 - i) * 4 + 2); });
}

__global__ void copies_without_increment(const int *in, int *out) {
    __shared__ int s[64];
    __shared__ unsigned long long object;
    unsigned a = shared_address(&object), t = threadIdx.x, done = 0;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(a) : "memory");
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&s[t])), "l"(in + t) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(a) : "memory");
    while (!done) asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(a) : "memory");
    out[t] = s[63 - t];
}
TEST(the_arrival_of_copies_can_be_the_threads_own) {
    Array<int> in(64, value, 0), out(64);
    copies_without_increment<<<1, 64>>>(in.device, out.device);
    return finished() && equal(out.down(), [](size_t i) { return value(63 - i); });
}

template <int STAGES> __global__ void pipelined(const int *in, int *out, int tiles) {
    __shared__ alignas(16) int s[STAGES][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int k = 0, fetch = 0; k < tiles; k++) {
        for (; fetch < tiles && fetch < k + STAGES; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[fetch % STAGES], in + fetch * 128, cuda::aligned_size_t<16>(512), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += s[k % STAGES][127 - block.thread_rank()];
        pipe.consumer_release();
    }
    out[block.thread_rank()] = sum;
}
TEST(a_pipeline_of_the_block) {
    for (int tiles : {1, 2, 7}) {
        Array<int> in(tiles * 128, value, 0), out(128);
        pipelined<2><<<1, 128>>>(in.device, out.device, tiles);
        auto want = [&](size_t i) {
            int sum = 0;
            for (int k = 0; k < tiles; k++) sum += value(k * 128 + 127 - i);
            return sum;
        };
        if (!finished() || !equal(out.down(), want)) return false;
    }
    return true;
}
