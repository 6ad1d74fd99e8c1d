// nvcuda::wmma in every shape, type and layout that sm_80 has, against integer arithmetic on the host: fragments are loaded
// from a larger matrix, from global or shared memory, changed element by element, multiplied and stored.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "conformance.h"

using namespace nvcuda;

template <class T> struct Stored { typedef T type; static T make(int v) { return (T)v; } };
template <> struct Stored<half> { typedef half type; static half make(int v) { return __float2half((float)v); } };
template <> struct Stored<__nv_bfloat16> { typedef __nv_bfloat16 type; static __nv_bfloat16 make(int v) { return __float2bfloat16((float)v); } };
template <> struct Stored<wmma::precision::tf32> { typedef float type; static float make(int v) { return (float)v; } };

template <class T, class F> __device__ void change(F &fragment) { // adds 1, as a program may that knows no layout
    for (int i = 0; i < fragment.num_elements; i++) fragment.x[i] = fragment.x[i] + T(1);
}

template <class T, class Sum, int M, int N, int K, class LayoutA, class LayoutB>
__global__ void product(const typename Stored<T>::type *a, int lda, const typename Stored<T>::type *b, int ldb, const Sum *c, Sum *d, int ldd, wmma::layout_t layout, bool shared) {
    __shared__ __align__(32) typename Stored<T>::type sa[64 * 64];
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
    const int size = lda * (std::is_same<LayoutA, wmma::row_major>::value ? M : K);
    for (int i = threadIdx.x; i < size; i += 32) sa[i] = a[i];
    __syncwarp();
    if (shared) wmma::load_matrix_sync(fa, sa, lda);
    else wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, ldd, layout);
    change<Sum>(fc);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, ldd, layout);
}

template <class T, class Sum, int M, int N, int K, class LayoutA, class LayoutB> bool right(wmma::layout_t layout, bool shared) {
    typedef Stored<T> S;
    const bool a_rows = std::is_same<LayoutA, wmma::row_major>::value, b_rows = std::is_same<LayoutB, wmma::row_major>::value;
    const bool d_rows = layout == wmma::mem_row_major;
    const int lda = (a_rows ? K : M) + 16, ldb = (b_rows ? N : K) + 32, ldd = (d_rows ? N : M) + 16;
    auto a = [&](int i, int x) { return (int)(noise(i * K + x) % 9) - (std::is_unsigned<T>::value ? 0 : 4); };
    auto b = [&](int x, int j) { return (int)(noise(x * N + j + 7777) % 7) - (std::is_unsigned<T>::value ? 0 : 3); };
    auto c = [&](int i, int j) { return (int)(noise(i * N + j + 3333) % 21) - 10; };
    Array<typename S::type> da((a_rows ? M : K) * lda, S::make(99)), db((b_rows ? K : N) * ldb, S::make(99));
    Array<Sum> dc((d_rows ? M : N) * ldd, Stored<Sum>::make(55)), dd((d_rows ? M : N) * ldd, Stored<Sum>::make(77));
    for (int i = 0; i < M; i++) for (int x = 0; x < K; x++) da.host[a_rows ? i * lda + x : x * lda + i] = S::make(a(i, x));
    for (int x = 0; x < K; x++) for (int j = 0; j < N; j++) db.host[b_rows ? x * ldb + j : j * ldb + x] = S::make(b(x, j));
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) dc.host[d_rows ? i * ldd + j : j * ldd + i] = Stored<Sum>::make(c(i, j));
    da.up(), db.up(), dc.up();
    product<T, Sum, M, N, K, LayoutA, LayoutB><<<1, 32>>>(da.device, lda, db.device, ldb, dc.device, dd.device, ldd, layout, shared);
    if (!finished()) return false;
    dd.down();
    for (size_t at = 0; at < dd.host.size(); at++) {
        const int line = (int)(at / ldd), place = (int)(at % ldd), i = d_rows ? line : place, j = d_rows ? place : line;
        int want = 77;
        if (place < (d_rows ? N : M)) {
            want = c(i, j) + 1;
            for (int x = 0; x < K; x++) want += a(i, x) * b(x, j);
        }
        if ((float)dd.host[at] != (float)want) {
            printf("  m%dn%dk%d, row %d, column %d: got %g, expected %d\n", M, N, K, i, j, (float)dd.host[at], want);
            return false;
        }
    }
    return true;
}
using wmma::col_major;
using wmma::row_major;
template <class T, class Sum, int M, int N, int K> bool in_two_layouts() {
    return right<T, Sum, M, N, K, row_major, row_major>(wmma::mem_row_major, false) && right<T, Sum, M, N, K, col_major, col_major>(wmma::mem_col_major, true);
}
template <class T, class Sum, int M, int N, int K> bool in_every_layout() {
    return in_two_layouts<T, Sum, M, N, K>() && right<T, Sum, M, N, K, row_major, col_major>(wmma::mem_col_major, true) &&
           right<T, Sum, M, N, K, col_major, row_major>(wmma::mem_row_major, false);
}
TEST(wmma_of_halves_in_every_shape) {
    EXPECT((in_every_layout<half, float, 16, 16, 16>() && in_two_layouts<half, float, 32, 8, 16>() && in_two_layouts<half, float, 8, 32, 16>()));
    EXPECT((in_two_layouts<half, half, 16, 16, 16>() && in_two_layouts<half, half, 32, 8, 16>() && in_two_layouts<half, half, 8, 32, 16>()));
    return true;
}
TEST(wmma_of_bf16_in_every_shape) {
    typedef __nv_bfloat16 T;
    EXPECT((in_two_layouts<T, float, 16, 16, 16>() && in_two_layouts<T, float, 32, 8, 16>() && in_two_layouts<T, float, 8, 32, 16>()));
    return true;
}
TEST(wmma_of_bytes_in_every_shape) {
    typedef signed char S;
    typedef unsigned char U;
    EXPECT((in_every_layout<S, int, 16, 16, 16>() && in_two_layouts<S, int, 32, 8, 16>() && in_two_layouts<S, int, 8, 32, 16>()));
    EXPECT((in_two_layouts<U, int, 16, 16, 16>() && in_two_layouts<U, int, 32, 8, 16>() && in_two_layouts<U, int, 8, 32, 16>()));
    return true;
}
TEST(wmma_of_tf32) { return in_two_layouts<wmma::precision::tf32, float, 16, 16, 8>(); }
TEST(wmma_of_doubles) { return in_every_layout<double, double, 8, 8, 4>(); }

// Elements of less than a byte have one layout only: A by rows, B by columns.
template <class T, int K, class Multiply> __device__ void packed(const void *a, const void *b, int ld, int *d, Multiply multiply) {
    wmma::fragment<wmma::matrix_a, 8, 8, K, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, K, T, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, K, int> fc;
    wmma::load_matrix_sync(fa, (const unsigned *)a, ld);
    wmma::load_matrix_sync(fb, (const unsigned *)b, ld);
    wmma::fill_fragment(fc, 3);
    multiply(fc, fa, fb);
    wmma::store_matrix_sync(d, fc, 8, wmma::mem_row_major);
}
__global__ void packed_products(const unsigned *a, const unsigned *b, int *d) {
    using namespace wmma::experimental;
    auto plain = [](auto &c, auto &x, auto &y) { wmma::mma_sync(c, x, y, c); };
    packed<precision::s4, 32>(a, b, 64, d, plain);
    packed<precision::u4, 32>(a, b, 64, d + 64, plain);
    packed<precision::b1, 128>(a, b, 256, d + 128, [](auto &c, auto &x, auto &y) { wmma::bmma_sync(c, x, y, c, bmmaBitOpXOR); });
    packed<precision::b1, 128>(a, b, 256, d + 192, [](auto &c, auto &x, auto &y) { wmma::bmma_sync(c, x, y, c, bmmaBitOpAND); });
}
TEST(wmma_of_nibbles_and_single_bits) {
    Array<unsigned> a(64, [](size_t i) { return noise(i); }, 0), b(64, [](size_t i) { return noise(i + 100); }, 0); // rows of 8 words
    Array<int> d(256);
    packed_products<<<1, 32>>>(a.device, b.device, d.device);
    if (!finished()) return false;
    return equal(d.down(), [&](size_t at) {
        const unsigned *p = &a.host[at % 64 / 8 * 8], *q = &b.host[at % 8 * 8];
        int s = 3;
        for (int x = 0; x < 32 && at < 128; x++) {
            const int up = x % 8 * 4, m = (int)(p[x / 8] >> up & 15), n = (int)(q[x / 8] >> up & 15);
            s += at < 64 ? ((m ^ 8) - 8) * ((n ^ 8) - 8) : m * n;
        }
        for (int x = 0; x < 128 && at >= 128; x++) {
            const int m = (int)(p[x / 32] >> x % 32 & 1), n = (int)(q[x / 32] >> x % 32 & 1);
            s += at < 192 ? m ^ n : m & n;
        }
        return s;
    });
}

// ldmatrix in its three sizes, with and without .trans, from shared and from generic addresses.
__global__ void matrices_from_shared(unsigned *out) {
    __shared__ __align__(16) unsigned short rows[32][8]; // element (i, j) is 8 i + j
    const int l = threadIdx.x;
    for (int j = 0; j < 8; j++) rows[l][j] = (unsigned short)(8 * l + j);
    __syncwarp();
    const unsigned p = (unsigned)__cvta_generic_to_shared(rows[(l + 8) % 32]);
    unsigned r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(p));
    out[l] = r[0];
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(p));
    out[32 + l] = r[0];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(p));
    out[64 + l] = r[1];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"((void *)rows[(l + 8) % 32]));
    out[96 + l] = r[3];
}
TEST(ldmatrix_in_every_form) {
    Array<unsigned> out(128);
    matrices_from_shared<<<1, 32>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) {
        const unsigned form = (unsigned)i / 32, g = i % 32 / 4, t = i % 4 * 2, first[4] = {8, 8, 16, 0}; // the matrix's first row
        auto element = [&](unsigned row, unsigned column) { return 8 * (first[form] + row) + column; };
        const bool turned = form == 1 || form == 2;
        return turned ? element(t, g) | element(t + 1, g) << 16 : element(g, t) | element(g, t + 1) << 16;
    });
}
