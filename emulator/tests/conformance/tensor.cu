// Matrix instructions, asynchronous copies, cooperative groups.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "conformance.h"

#include <thread>

namespace cg = cooperative_groups;
using namespace nvcuda;

__global__ void wmma_half(const half *a, const half *b, float *c, int n) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(fa, a + row * n + k, n);
        wmma::load_matrix_sync(fb, b + column * n + k, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 2.0f;
    wmma::store_matrix_sync(c + row * n + column, fc, n, wmma::mem_row_major);
}
static unsigned short half_bits(float x) { return __half_as_ushort(__float2half(x)); }
static float small(uint64_t i) { return (float)((int)(noise(i) % 17) - 8) / 8; }
TEST(wmma_half_matrix_product) {
    const int n = 48;
    Array<unsigned short> a(n * n, [](size_t i) { return half_bits(small(i)); }, 0), b(n * n, [](size_t i) { return half_bits(small(i + 9999)); }, 0);
    Array<float> c(n * n);
    wmma_half<<<dim3(3, 3), 32>>>((half *)a.device, (half *)b.device, c.device, n);
    if (!finished()) return false;
    return equal(c.down(), [&](size_t k) { float s = 0; for (int x = 0; x < n; x++) s += small(k / n * n + x) * small(k % n * n + x + 9999); return 2 * s; });
}
__global__ void wmma_bytes(const signed char *a, const signed char *b, int *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
    wmma::fill_fragment(fc, 3);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
TEST(wmma_bytes) {
    Array<signed char> a(256, [](size_t i) { return (signed char)noise(i); }, 0), b(256, [](size_t i) { return (signed char)noise(i + 300); }, 0);
    Array<int> c(256);
    wmma_bytes<<<1, 32>>>(a.device, b.device, c.device);
    if (!finished()) return false;
    return equal(c.down(), [&](size_t k) { int s = 3; for (int x = 0; x < 16; x++) s += a.host[k / 16 * 16 + x] * b.host[x * 16 + k % 16]; return s; });
}
__global__ void mma_from_shared(const half *a, const half *b, float *c) { // 16×16 times 16×8
    __shared__ __align__(16) half sa[16][16], sb[16][8];
    int l = threadIdx.x;
    for (int i = l; i < 256; i += 32) sa[i / 16][i % 16] = a[i];
    for (int i = l; i < 128; i += 32) sb[i / 8][i % 8] = b[i];
    __syncwarp();
    unsigned ra[4], rb[2];
    unsigned pa = (unsigned)__cvta_generic_to_shared(&sa[l % 16][l / 16 * 8]), pb = (unsigned)__cvta_generic_to_shared(&sb[l % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
    float d[4] = {1, 1, 1, 1};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    for (int i = 0; i < 4; i++) c[(l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2] = d[i];
}
TEST(mma_with_ldmatrix) {
    Array<unsigned short> a(256, [](size_t i) { return half_bits(small(i)); }, 0), b(128, [](size_t i) { return half_bits(small(i + 500)); }, 0);
    Array<float> c(128);
    mma_from_shared<<<1, 32>>>((half *)a.device, (half *)b.device, c.device);
    if (!finished()) return false;
    return equal(c.down(), [&](size_t k) { float s = 1; for (int x = 0; x < 16; x++) s += small(k / 8 * 16 + x) * small(x * 8 + k % 8 + 500); return s; });
}
__global__ void mma_types(const float *x, float *out, int *iout) {
    int l = threadIdx.x, g = l / 4, t = l % 4;
    unsigned a[4], b[2];
    float d[4] = {0, 0, 0, 0};
    // tf32, 16×8 times 8×8
    for (int r = 0; r < 4; r++) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(a[r]) : "f"(x[(g + r % 2 * 8) * 8 + t + r / 2 * 4]));
    for (int r = 0; r < 2; r++) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(b[r]) : "f"(x[128 + (t + r * 4) * 8 + g]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; i++) out[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
    // bf16, 16×8 times 8×8
    __nv_bfloat162 p[2], q;
    for (int r = 0; r < 2; r++) p[r] = __floats2bfloat162_rn(x[(g + r * 8) * 8 + t * 2], x[(g + r * 8) * 8 + t * 2 + 1]);
    q = __floats2bfloat162_rn(x[128 + t * 2 * 8 + g], x[128 + (t * 2 + 1) * 8 + g]);
    for (int i = 0; i < 4; i++) d[i] = 0;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(*(unsigned *)&p[0]), "r"(*(unsigned *)&p[1]), "r"(*(unsigned *)&q));
    for (int i = 0; i < 4; i++) out[128 + (g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
    // s8, 16×16 times 16×8
    int e[4] = {7, 7, 7, 7};
    unsigned m = 0x01020304u * (unsigned)(g + 1) + (unsigned)t, n = 0xff01fe02u + (unsigned)l;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+r"(e[0]), "+r"(e[1]), "+r"(e[2]), "+r"(e[3]) : "r"(m), "r"(m * 3), "r"(n));
    for (int i = 0; i < 4; i++) iout[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = e[i];
}
TEST(mma_tf32_bf16_and_bytes) {
    Array<float> x(192, [](size_t i) { return small(i); }, 0), out(256);
    Array<int> iout(128);
    mma_types<<<1, 32>>>(x.device, out.device, iout.device);
    if (!finished()) return false;
    bool ok = equal(out.down(), [&](size_t k) { float s = 0; size_t r = k % 128; for (int i = 0; i < 8; i++) s += small(r / 8 * 8 + i) * small(128 + i * 8 + r % 8); return s; });
    return ok && equal(iout.down(), [&](size_t k) {
        int row = (int)k / 8, column = (int)k % 8, s = 7;
        for (int i = 0; i < 16; i++) {
            unsigned m = 0x01020304u * (unsigned)(row % 8 + 1) + (unsigned)(i / 4), n = 0xff01fe02u + (unsigned)(column * 4 + i / 4);
            if (row >= 8) m *= 3;
            s += (int)(signed char)(m >> 8 * (i % 4)) * (int)(signed char)(n >> 8 * (i % 4));
        }
        return s;
    });
}
__global__ void asynchronous(const float4 *in, float *out, int n) {
    __shared__ float4 s[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], &in[t], 16);
    __pipeline_commit();
    float sum = 0;
    for (int i = 0; i < n; i++) {
        if (i + 1 < n) __pipeline_memcpy_async(&s[(i + 1) & 1][t], &in[(i + 1) * 64 + t], 16, t == 0 ? 8 : 0);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = s[i & 1][(t + 1) % 64];
        sum += v.x + v.y * 2 + v.z * 3 + v.w * 4;
        __syncthreads();
    }
    out[t] = sum;
}
TEST(asynchronous_copies) {
    const int n = 4;
    Array<float4> in(64 * n);
    for (int i = 0; i < 64 * n; i++) in.host[i] = make_float4(i, i + 1, i + 2, i + 3);
    in.up();
    Array<float> out(64);
    asynchronous<<<1, 64>>>(in.device, out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t t) {
        float s = 0;
        for (int i = 0; i < n; i++) {
            int k = i * 64 + (int)(t + 1) % 64;
            bool cut = i > 0 && (t + 1) % 64 == 0;
            s += k + (k + 1) * 2.0f + (cut ? 0 : (k + 2) * 3.0f) + (cut ? 0 : (k + 3) * 4.0f);
        }
        return s;
    });
}
__global__ void groups(const int *in, int *out) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    int v = in[block.thread_rank()];
    for (int k = tile.size() / 2; k; k /= 2) v += tile.shfl_down(v, k);
    __shared__ int sums[8];
    if (tile.thread_rank() == 0) sums[block.thread_rank() / 16] = v;
    block.sync();
    int odd = 0;
    if (in[block.thread_rank()] & 1) {
        cg::coalesced_group active = cg::coalesced_threads();
        odd = (int)active.size() * 100 + (int)active.thread_rank();
    }
    out[block.thread_rank()] = sums[block.thread_rank() / 16] + tile.any(v == -1) + odd;
}
TEST(cooperative_groups_tiles) {
    Array<int> in(128, [](size_t i) { return (int)(noise(i) % 1000); }, 0), out(128);
    groups<<<1, 128>>>(in.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) {
        int s = 0, size = 0, rank = 0;
        for (int k = 0; k < 16; k++) s += in.host[i / 16 * 16 + k];
        for (size_t k = i / 32 * 32; k < i / 32 * 32 + 32; k++) size += in.host[k] & 1, rank += k < i && (in.host[k] & 1);
        return s + (in.host[i] & 1 ? size * 100 + rank : 0);
    });
}
__global__ void grid_wide(int *a, int *b, int rounds) {
    cg::grid_group grid = cg::this_grid();
    int i = (int)grid.thread_rank(), n = (int)grid.size();
    for (int r = 0; r < rounds; r++) {
        b[i] = a[(i + 1) % n] + 1;
        grid.sync();
        a[i] = b[(i + n - 1) % n] * 2 % 1009;
        grid.sync();
    }
}
// Grids of several host threads have each its own barrier.
__global__ void hand_on(int *values) {
    cg::grid_group grid = cg::this_grid();
    for (int i = 0; i < 8; i++) {
        int next = values[(grid.thread_rank() + 1) % grid.size()];
        grid.sync();
        values[grid.thread_rank()] = next;
        grid.sync();
    }
}
TEST(grids_of_several_host_threads_keep_apart) {
    bool right[2] = {true, true};
    auto launches = [&](int which) {
        for (int k = 0; k < 40; k++) {
            Array<int> values(128, [](size_t i) { return (int)i; }, 0);
            void *arguments[] = {&values.device};
            cudaLaunchCooperativeKernel((void *)hand_on, 4, 32, arguments, 0, 0);
            right[which] = right[which] && equal(values.down(), [](size_t i) { return (int)(i + 8) % 128; });
        }
    };
    std::thread other(launches, 1);
    launches(0);
    other.join();
    return finished() && right[0] && right[1];
}
TEST(grid_synchronisation) {
    const int n = 8 * 96;
    int rounds = 5;
    Array<int> a(n, [](size_t i) { return (int)i; }, 0), b(n);
    void *arguments[] = {&a.device, &b.device, &rounds};
    CHECK(cudaLaunchCooperativeKernel((const void *)grid_wide, dim3(8), dim3(96), arguments, 0, 0));
    if (!finished()) return false;
    std::vector<int> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = i;
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < n; i++) y[i] = x[(i + 1) % n] + 1;
        for (int i = 0; i < n; i++) x[i] = y[(i + n - 1) % n] * 2 % 1009;
    }
    return equal(a.down(), [&](size_t i) { return x[i]; });
}
