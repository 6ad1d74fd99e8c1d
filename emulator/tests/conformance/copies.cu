// Asynchronous copies (cp.async): groups, waits, zero fill, and where threads part or leave.
#include "conformance.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline_primitives.h>

namespace cg = cooperative_groups;

__device__ void wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
static int value(size_t i) { return (int)(noise(i) & 0xffffff); }

__global__ void four_stages(const int *in, int *out, int tiles) {
    __shared__ int s[4][96];
    int t = threadIdx.x;
    for (int k = 0; k < 3; k++) {
        if (k < tiles) __pipeline_memcpy_async(&s[k][t], &in[k * 96 + t], 4);
        __pipeline_commit(); // empty when there are fewer tiles
    }
    for (int k = 0; k < tiles; k++) {
        if (k + 3 < tiles) __pipeline_memcpy_async(&s[(k + 3) % 4][t], &in[(k + 3) * 96 + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(3);
        __syncthreads();
        out[k * 96 + t] = s[k % 4][95 - t];
        __syncthreads();
    }
}
TEST(copies_in_four_stages) {
    for (int tiles : {1, 2, 7}) {
        Array<int> in(tiles * 96, value, 0), out(tiles * 96);
        four_stages<<<1, 96>>>(in.device, out.device, tiles);
        if (!finished() || !equal(out.down(), [&](size_t i) { return value(i / 96 * 96 + 95 - i % 96); })) return false;
    }
    return true;
}

// Group g of a lane copies element g; a wait that leaves two groups has brought all but the last two.
__global__ void oldest_first(const int *in, int *out) {
    __shared__ int s[5][64];
    int t = threadIdx.x;
#pragma unroll
    for (int g = 0; g < 5; g++) {
        __pipeline_memcpy_async(&s[g][t], &in[g * 64 + t], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(2);
    for (int g = 0; g < 3; g++) out[g * 64 + t] = s[g][t];
    __pipeline_wait_prior(1);
    out[3 * 64 + t] = s[3][t];
    __pipeline_wait_prior(0);
    out[4 * 64 + t] = s[4][t];
}
TEST(the_oldest_groups_are_waited_for_first) {
    Array<int> in(320, value, 0), out(320);
    oldest_first<<<1, 64>>>(in.device, out.device);
    return finished() && equal(out.down(), value);
}

__global__ void uncommitted(const int2 *in, int2 *out) {
    __shared__ int2 s[2][32];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], &in[t], 8);
    __pipeline_commit();
    __pipeline_memcpy_async(&s[1][t], &in[32 + t], 8);
    wait_all();
    out[t] = s[0][t];
    out[32 + t] = s[1][t];
}
TEST(wait_all_is_for_copies_without_a_commit_too) {
    Array<int> in(128, value, 0), out(128);
    uncommitted<<<1, 32>>>((const int2 *)in.device, (int2 *)out.device);
    return finished() && equal(out.down(), value);
}

__global__ void left_for_a_later_group(const int *in, int *out) {
    __shared__ int s[2][32];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], &in[t], 4);
    __pipeline_wait_prior(0); // of no group: the copy belongs to the next one
    __pipeline_memcpy_async(&s[1][t], &in[32 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[t] = s[0][t];
    out[32 + t] = s[1][t];
}
TEST(a_group_takes_all_copies_since_the_last_commit) {
    Array<int> in(64, value, 0), out(64);
    left_for_a_later_group<<<1, 32>>>(in.device, out.device);
    return finished() && equal(out.down(), value);
}

// A lane makes lane % 4 more groups behind its first one, and waits for all but those.
__global__ void groups_of_a_lane(const int *in, int *out) {
    __shared__ int s[4][64];
    int t = threadIdx.x, more = t % 4;
    __pipeline_memcpy_async(&s[0][t], &in[t], 4);
    __pipeline_commit();
    for (int g = 1; g <= more; g++) {
        __pipeline_memcpy_async(&s[g][t], &in[g * 64 + t], 4);
        __pipeline_commit();
    }
    switch (more) {
    case 0: __pipeline_wait_prior(0); break;
    case 1: __pipeline_wait_prior(1); break;
    case 2: __pipeline_wait_prior(2); break;
    default: __pipeline_wait_prior(3);
    }
    int sum = s[0][t];
    __pipeline_wait_prior(0);
    for (int g = 1; g <= more; g++) sum += s[g][t] * (g + 1);
    out[t] = sum;
}
TEST(lanes_of_a_warp_have_groups_of_their_own) {
    Array<int> in(256, value, 0), out(64);
    groups_of_a_lane<<<1, 64>>>(in.device, out.device);
    return finished() && equal(out.down(), [](size_t t) {
        int sum = 0;
        for (size_t g = 0; g <= t % 4; g++) sum += value(g * 64 + t) * (int)(g + 1);
        return sum;
    });
}

__global__ void on_one_side(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], 4);
    __pipeline_commit();
    int v = -1;
    if (in[t] & 1) {
        __pipeline_wait_prior(0);
        v = s[t];
    } else
        __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = v + 3 * s[63 - t];
}
TEST(half_of_a_warp_waits_earlier) {
    Array<int> in(64, value, 0), out(64);
    on_one_side<<<1, 64>>>(in.device, out.device);
    return finished() && equal(out.down(), [](size_t t) { return (value(t) & 1 ? value(t) : -1) + 3 * value(63 - t); });
}

__global__ void leaves_with_copies(const int *in, int *out, int n) {
    __shared__ int s[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], &in[t], 4);
    __pipeline_commit();
    if (t >= n) return; // never waits
    __pipeline_memcpy_async(&s[1][t], &in[64 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = s[0][n - 1 - t] + 7 * s[1][t];
}
TEST(threads_leave_while_their_copies_are_under_way) {
    const int n = 41;
    Array<int> in(128, value, 0), out(n);
    leaves_with_copies<<<1, 64>>>(in.device, out.device, n);
    return finished() && equal(out.down(), [&](size_t t) { return value(n - 1 - t) + 7 * value(64 + t); });
}

// Each block ends with copies that nobody has waited for; the next one on the multiprocessor must not get them.
__global__ void leaves_copies_behind(const int *in, int *out) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = (int)blockIdx.x;
    __syncthreads();
    out[blockIdx.x * 256 + t] = s[255 - t];
    __syncthreads();
    __pipeline_memcpy_async(&s[t], &in[t], 4);
    if (t & 1) __pipeline_commit();
}
TEST(copies_left_by_a_block_do_not_reach_the_next) {
    const int blocks = 3000;
    Array<int> in(256, value, 0), out(blocks * 256);
    leaves_copies_behind<<<blocks, 256>>>(in.device, out.device);
    return finished() && equal(out.down(), [](size_t i) { return i / 256; });
}

template <int Bytes, int Zeros> __device__ void padded_copy(const unsigned char *in, unsigned char *out) {
    __shared__ __align__(16) unsigned char s[32 * Bytes];
    int t = threadIdx.x;
    for (int b = 0; b < Bytes; b++) s[t * Bytes + b] = 0xee;
    __pipeline_memcpy_async(&s[t * Bytes], &in[t * Bytes], Bytes, Zeros);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int b = 0; b < Bytes; b++) out[t * Bytes + b] = s[t * Bytes + b];
}
__global__ void padded_copies(const unsigned char *in, unsigned char *out) {
    padded_copy<4, 0>(in, out), padded_copy<4, 1>(in, out + 512), padded_copy<4, 4>(in, out + 1024);
    padded_copy<8, 0>(in, out + 1536), padded_copy<8, 5>(in, out + 2048), padded_copy<16, 0>(in, out + 2560);
    padded_copy<16, 7>(in, out + 3072), padded_copy<16, 16>(in, out + 3584);
}
TEST(what_is_not_copied_is_filled_with_zeros) {
    Array<unsigned char> in(512, value, 0), out(4096, 0x55);
    padded_copies<<<1, 32>>>(in.device, out.device);
    const size_t bytes[] = {4, 4, 4, 8, 8, 16, 16, 16}, zeros[] = {0, 1, 4, 0, 5, 0, 7, 16};
    return finished() && equal(out.down(), [&](size_t i) {
        size_t k = i / 512, at = i % 512;
        return at >= 32 * bytes[k] ? 0x55 : at % bytes[k] >= bytes[k] - zeros[k] ? 0 : (unsigned char)value(at);
    });
}

// The number of bytes from the source in a register; a lane that gives none may point past the end.
__global__ void bytes_by_lane(const int4 *in, int4 *out, int n) {
    __shared__ int4 s[32];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]), bytes = t < n ? t % 5 * 4 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(&in[t]), "r"(bytes) : "memory");
    wait_all();
    out[t] = s[t];
}
TEST(each_lane_says_how_many_bytes_it_copies) {
    const int n = 23;
    Array<int> in(4 * n, value, 0), out(128);
    bytes_by_lane<<<1, 32>>>((const int4 *)in.device, (int4 *)out.device, n);
    return finished() && equal(out.down(), [&](size_t i) { return i / 4 < n && i % 4 < i / 4 % 5 ? value(i) : 0; });
}

__global__ void ignored_sources(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }" ::"r"(to), "l"(&in[t]), "r"(t % 3) : "memory");
    wait_all();
    out[t] = s[t];
}
TEST(a_source_is_ignored_by_a_predicate) {
    Array<int> in(32, value, 0), out(32);
    ignored_sources<<<1, 32>>>(in.device, out.device);
    return finished() && equal(out.down(), [](size_t t) { return t % 3 ? 0 : value(t); });
}

__device__ __noinline__ void start_rows(int *to, const int *from, int rows) {
    for (int r = threadIdx.x / 32; r < rows; r += blockDim.x / 32)
        for (int i = threadIdx.x % 32; i < r; i += 32) // rows of different lengths: lanes part
            __pipeline_memcpy_async(&to[r * 64 + i], &from[r * 64 + i], 4);
    __pipeline_commit();
}
__global__ void uneven_rows(const int *in, int *out, int rows) {
    __shared__ int s[50 * 64];
    start_rows(s, in, rows);
    __syncthreads(); // warps take turns while copies are under way
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int i = threadIdx.x; i < rows * 64; i += blockDim.x) out[i] = i % 64 < i / 64 ? s[i] : -1;
}
TEST(copies_in_a_loop_that_lanes_leave_one_by_one) {
    const int rows = 50;
    Array<int> in(rows * 64, value, 0), out(rows * 64);
    uneven_rows<<<1, 128>>>(in.device, out.device, rows);
    return finished() && equal(out.down(), [](size_t i) { return i % 64 < i / 64 ? value(i) : -1; });
}

__global__ void across_the_grid(const int *in, int *out) {
    __shared__ int s[64];
    cg::grid_group grid = cg::this_grid();
    int t = threadIdx.x, i = (int)grid.thread_rank(), n = (int)grid.size();
    __pipeline_memcpy_async(&s[t], &in[i], 4);
    __pipeline_commit();
    out[n - 1 - i] = i;
    grid.sync(); // blocks take turns while copies are under way
    __pipeline_wait_prior(0);
    __syncthreads();
    out[i] += 5 * s[63 - t];
}
TEST(copies_under_way_across_a_barrier_of_the_grid) {
    const int n = 8 * 64;
    Array<int> in(n, value, 0), out(n);
    void *arguments[] = {&in.device, &out.device};
    CHECK(cudaLaunchCooperativeKernel((const void *)across_the_grid, dim3(8), dim3(64), arguments, 0, 0));
    return finished() && equal(out.down(), [&](size_t i) { return n - 1 - (int)i + 5 * value(i / 64 * 64 + 63 - i % 64); });
}

__global__ void by_cooperative_groups(const int *in, int *out) {
    __shared__ __align__(16) int s[2][256];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, s[0], in, sizeof s[0]);
    cg::memcpy_async(block, s[1], in + 256, sizeof s[1]);
    cg::wait_prior<1>(block);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = s[0][255 - i];
    cg::wait(block);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[256 + i] = s[1][255 - i];
}
TEST(copies_of_cooperative_groups) {
    Array<int> in(512, value, 0), out(512);
    by_cooperative_groups<<<1, 96>>>(in.device, out.device);
    return finished() && equal(out.down(), [](size_t i) { return value(i / 256 * 256 + 255 - i % 256); });
}

// A cache policy, here the one of evict_first, is the last operand and changes nothing; before it may stand how many bytes
// are copied.
#define EVICT_FIRST "0x12F0000000000000"
__global__ void with_cache_policy(const int4 *in, int4 *out) {
    __shared__ int4 s[2][32];
    const unsigned t = threadIdx.x, bytes = t % 5 * 4;
    const unsigned long long policy = 0x12F0000000000000ull;
    unsigned to[2] = {(unsigned)__cvta_generic_to_shared(&s[0][t]), (unsigned)__cvta_generic_to_shared(&s[1][t])};
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, " EVICT_FIRST ";" ::"r"(to[0]), "l"(in + t) : "memory");
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to[1]), "l"(in + t), "r"(bytes), "l"(policy) : "memory");
    wait_all();
    int4 v;
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(in + t), "l"(policy));
    out[t] = s[0][t];
    out[32 + t] = s[1][t];
    asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(out + 64 + t), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "l"(policy) : "memory");
}
TEST(copies_with_a_cache_policy) {
    Array<int> in(128, value, 0), out(384);
    with_cache_policy<<<1, 32>>>((const int4 *)in.device, (int4 *)out.device);
    return finished() && equal(out.down(), [](size_t i) { return i / 128 == 1 && i % 4 >= i % 128 / 4 % 5 ? 0 : value(i % 128); });
}
