// Memory spaces, vector accesses, atomics, local arrays, constants, generic pointers, device heap.
#include "conformance.h"

__constant__ float table[256];
__constant__ int fixed[5] = {3, 1, 4, 1, 5};
__device__ int counter = 41;
__device__ double weights[3] = {0.5, -2.0, 1e10};
__device__ const char *const words[3] = {"alpha", "beta", "gamma"};
__managed__ int shared_with_host[64];

__global__ void from_constant(float *out, const int *index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[index[i] & 255] + table[i & 7] + fixed[i % 5];
}
TEST(constant_memory) {
    float host[256];
    for (int i = 0; i < 256; i++) host[i] = uniform(i);
    CHECK(cudaMemcpyToSymbol(table, host, sizeof host));
    Array<int> index(500, [](size_t i) { return (int)(noise(i) & 0xffff); }, 0);
    Array<float> out(500);
    from_constant<<<4, 128>>>(out.device, index.device, 500);
    if (!finished()) return false;
    const int want[5] = {3, 1, 4, 1, 5};
    return equal(out.down(), [&](size_t i) { return host[index.host[i] & 255] + host[i & 7] + want[i % 5]; });
}
__global__ void device_variables(double *out, int *lengths) {
    atomicAdd(&counter, 1);
    if (blockIdx.x == 0 && threadIdx.x < 3) {
        out[threadIdx.x] = weights[threadIdx.x] * 2;
        weights[threadIdx.x] += 1;
        int n = 0;
        while (words[threadIdx.x][n]) n++;
        lengths[threadIdx.x] = n * 256 + words[threadIdx.x][1];
    }
}
TEST(device_variables_and_symbols) {
    Array<double> out(3);
    Array<int> lengths(3);
    device_variables<<<2, 40>>>(out.device, lengths.device);
    if (!finished()) return false;
    int c;
    CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    EXPECT(c == 41 + 80);
    double w[3];
    CHECK(cudaMemcpyFromSymbol(w, weights, sizeof w));
    EXPECT(w[1] == -1.0);
    void *address;
    size_t size;
    CHECK(cudaGetSymbolAddress(&address, counter));
    CHECK(cudaGetSymbolSize(&size, weights));
    EXPECT(size == 24);
    CHECK(cudaMemset(address, 0, 4));
    CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    EXPECT(c == 0);
    lengths.down();
    EXPECT(lengths.host[0] == 5 * 256 + 'l' && lengths.host[1] == 4 * 256 + 'e' && lengths.host[2] == 5 * 256 + 'a');
    return true;
}
__global__ void managed_variable() { shared_with_host[threadIdx.x] += threadIdx.x; }
TEST(managed_variables) {
    for (int i = 0; i < 64; i++) shared_with_host[i] = 100 * i;
    managed_variable<<<1, 64>>>();
    if (!finished()) return false;
    for (int i = 0; i < 64; i++) EXPECT(shared_with_host[i] == 101 * i);
    return true;
}
__global__ void static_shared(const float *in, float *out) {
    __shared__ float tile[16][17];
    __shared__ int sum;
    int x = threadIdx.x, y = threadIdx.y;
    if (x == 0 && y == 0) sum = 0;
    tile[y][x] = in[y * 16 + x];
    __syncthreads();
    atomicAdd(&sum, (int)tile[x][y]);
    __syncthreads();
    out[y * 16 + x] = tile[x][y] + sum;
}
TEST(static_shared_memory_16_by_16) {
    Array<float> in(256, [](size_t i) { return (float)(noise(i) % 100); }, 0), out(256);
    static_shared<<<1, dim3(16, 16)>>>(in.device, out.device);
    if (!finished()) return false;
    float sum = 0;
    for (float v : in.host) sum += v;
    return equal(out.down(), [&](size_t i) { return in.host[i % 16 * 16 + i / 16] + sum; });
}
__global__ void dynamic_shared(int *out, int n) {
    extern __shared__ int pool[];
    __shared__ int first[32];
    short *halves = (short *)(pool + n);
    pool[threadIdx.x] = threadIdx.x * 3;
    halves[threadIdx.x] = (short)(threadIdx.x - 40);
    first[threadIdx.x & 31] = 7;
    __syncthreads();
    int j = (threadIdx.x * 7 + 3) % n;
    out[threadIdx.x] = pool[j] + halves[(j + 1) % n] + first[j & 31];
}
TEST(dynamic_shared_memory) {
    const int n = 96;
    Array<int> out(n);
    dynamic_shared<<<1, n, n * 6>>>(out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { int j = (int)(i * 7 + 3) % n; return j * 3 + (j + 1) % n - 40 + 7; });
}
__global__ void opt_in_shared(int *out) {
    extern __shared__ int pool[];
    for (int i = threadIdx.x; i < 25000; i += blockDim.x) pool[i] = i;
    __syncthreads();
    out[threadIdx.x] = pool[24999 - threadIdx.x];
}
TEST(dynamic_shared_memory_above_48_kib) {
    Array<int> out(64);
    CHECK(cudaFuncSetAttribute(opt_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    opt_in_shared<<<1, 64, 100000>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return 24999 - (int)i; });
}
__global__ void vectors(const float4 *a, const int2 *b, const double2 *c, float4 *out, int2 *bo, double2 *co, uchar4 *u, short2 *s) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    float4 v = a[i];
    out[i] = make_float4(v.w, v.z + 1, v.y * 2, v.x);
    int2 p = b[i ^ 1];
    bo[i] = make_int2(p.y, -p.x);
    double2 q = c[i];
    co[i] = make_double2(q.y, q.x * 0.5);
    uchar4 w = u[i];
    u[i] = make_uchar4(w.w, w.x, w.y, w.z);
    short2 h = s[i];
    s[i] = make_short2((short)(h.y + 1), h.x);
}
TEST(vector_accesses) {
    const int n = 128;
    Array<float4> a(n), out(n);
    Array<int2> b(n), bo(n);
    Array<double2> c(n), co(n);
    Array<uchar4> u(n);
    Array<short2> s(n);
    for (int i = 0; i < n; i++) {
        a.host[i] = make_float4(i, i + 0.25f, i + 0.5f, i + 0.75f), b.host[i] = make_int2(i, 1000 - i), c.host[i] = make_double2(i * 0.1, -i);
        u.host[i] = make_uchar4(i, i + 1, i + 2, i + 3), s.host[i] = make_short2((short)-i, (short)(i * 3));
    }
    a.up(), b.up(), c.up(), u.up(), s.up();
    vectors<<<2, 64>>>(a.device, b.device, c.device, out.device, bo.device, co.device, u.device, s.device);
    if (!finished()) return false;
    out.down(), bo.down(), co.down(), u.down(), s.down();
    for (int i = 0; i < n; i++) {
        EXPECT(out.host[i].x == i + 0.75f && out.host[i].y == i + 1.5f && out.host[i].z == 2 * (i + 0.25f) && out.host[i].w == i);
        EXPECT(bo.host[i].x == 1000 - (i ^ 1) && bo.host[i].y == -(i ^ 1));
        EXPECT(co.host[i].x == -i && co.host[i].y == i * 0.1 * 0.5);
        EXPECT(u.host[i].x == (unsigned char)(i + 3) && u.host[i].y == (unsigned char)i);
        EXPECT(s.host[i].x == (short)(i * 3 + 1) && s.host[i].y == (short)-i);
    }
    return true;
}
struct Record {
    char tag;
    short small;
    int value;
    double weight;
};
__global__ void structures(Record *r, const unsigned char *bytes, unsigned char *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Record x = r[i];
    x.tag++, x.small = (short)(x.small * 2), x.value -= i, x.weight *= 1.5;
    r[i] = x;
    out[n - 1 - i] = (unsigned char)(bytes[i * 3] + bytes[i * 3 + 2]);
}
TEST(structures_and_strided_bytes) {
    const int n = 77;
    Array<Record> r(n);
    Array<unsigned char> bytes(3 * n, [](size_t i) { return (unsigned char)noise(i); }, 0), out(n);
    for (int i = 0; i < n; i++) r.host[i] = {(char)i, (short)(i - 30), i * 1000, i * 0.125};
    r.up();
    structures<<<2, 48>>>(r.device, bytes.device, out.device, n);
    if (!finished()) return false;
    r.down();
    for (int i = 0; i < n; i++) EXPECT(r.host[i].tag == (char)(i + 1) && r.host[i].small == (short)((i - 30) * 2) && r.host[i].value == i * 1000 - i && r.host[i].weight == i * 0.125 * 1.5);
    return equal(out.down(), [&](size_t k) { size_t i = n - 1 - k; return (unsigned char)(bytes.host[i * 3] + bytes.host[i * 3 + 2]); });
}
__global__ void local_arrays(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int a[24];
    double d[6];
    char c[12];
    for (int k = 0; k < 24; k++) a[k] = in[(i + k) % n];
    for (int k = 0; k < 6; k++) d[k] = a[k * 4] * 0.5;
    for (int k = 0; k < 12; k++) c[k] = (char)(a[k] >> 3);
    for (int k = 1; k < 24; k++) { // insertion sort: indices that differ from thread to thread
        int v = a[k], j = k - 1;
        while (j >= 0 && a[j] > v) a[j + 1] = a[j], j--;
        a[j + 1] = v;
    }
    out[i] = a[in[i] % 24] + (int)d[in[i] % 6] + c[in[i] % 12];
}
TEST(local_arrays_with_dynamic_indices) {
    const int n = 192;
    Array<int> in(n, [](size_t i) { return (int)(noise(i) % 1000); }, 0), out(n);
    local_arrays<<<3, 64>>>(in.device, out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) {
        std::vector<int> a(24);
        double d[6];
        char c[12];
        for (int k = 0; k < 24; k++) a[k] = in.host[(i + k) % n];
        for (int k = 0; k < 6; k++) d[k] = a[k * 4] * 0.5;
        for (int k = 0; k < 12; k++) c[k] = (char)(a[k] >> 3);
        std::sort(a.begin(), a.end());
        return a[in.host[i] % 24] + (int)d[in.host[i] % 6] + c[in.host[i] % 12];
    });
}
__device__ __noinline__ int through(const int *p, int k) { return p[k] * 2; }
__global__ void generic_pointers(const int *in, int *out, int which) {
    __shared__ int s[64];
    int l[4];
    s[threadIdx.x] = in[threadIdx.x] + 1;
    for (int k = 0; k < 4; k++) l[k] = in[(threadIdx.x + k) & 63] - 1;
    __syncthreads();
    const int *p = which == 0 ? in : which == 1 ? s : l;
    int lane_choice = (threadIdx.x + which) % 3;
    const int *q = lane_choice == 0 ? in : lane_choice == 1 ? s : l;
    out[threadIdx.x] = through(p, threadIdx.x & 3) + through(q, 2);
}
TEST(generic_pointers_to_all_spaces) {
    Array<int> in(64, [](size_t i) { return (int)(noise(i) % 1000); }, 0), out(64);
    for (int which = 0; which < 3; which++) {
        generic_pointers<<<1, 64>>>(in.device, out.device, which);
        if (!finished()) return false;
        bool ok = equal(out.down(), [&](size_t i) {
            auto at = [&](int space, size_t k) { return space == 0 ? in.host[k] : space == 1 ? in.host[k] + 1 : in.host[(i + k) & 63] - 1; };
            return 2 * at(which, i & 3) + 2 * at((int)(i + which) % 3, 2);
        });
        if (!ok) return false;
    }
    return true;
}
__global__ void global_atomics(int *i, unsigned *u, float *f, double *d, unsigned long long *l) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], t), atomicSub(&i[1], t), atomicMin(&i[2], -t), atomicMax(&i[3], t), atomicAnd(&i[4], ~(1 << (t & 7))), atomicOr(&i[5], 1 << (t & 15)), atomicXor(&i[6], t);
    atomicInc(&u[0], 99), atomicDec(&u[1], 50), atomicMax(&u[2], (unsigned)t * 7), atomicMin(&u[3], 5000u - t);
    atomicAdd(f, 0.5f), atomicAdd(d, 0.25), atomicAdd(&l[0], 1ull << 33), atomicMax(&l[1], (unsigned long long)t << 32);
    atomicExch(&i[7], 1234);
}
TEST(global_atomics) {
    Array<int> i(8);
    i.host = {0, 0, 0, 0, -1, 0, 0, 0};
    i.up();
    Array<unsigned> u(4);
    u.host = {0, 0, 0, ~0u};
    u.up();
    Array<float> f(1);
    Array<double> d(1);
    Array<unsigned long long> l(2);
    const int n = 640;
    global_atomics<<<5, 128>>>(i.device, u.device, f.device, d.device, l.device);
    if (!finished()) return false;
    i.down(), u.down(), f.down(), d.down(), l.down();
    int x = 0;
    for (int t = 0; t < n; t++) x ^= t;
    EXPECT(i.host[0] == n * (n - 1) / 2 && i.host[1] == -n * (n - 1) / 2 && i.host[2] == 1 - n && i.host[3] == n - 1 && i.host[4] == ~255 && i.host[5] == 65535 && i.host[6] == x && i.host[7] == 1234);
    EXPECT(u.host[0] == n % 100 && u.host[2] == (n - 1) * 7u && u.host[3] == 5000u - (n - 1));
    EXPECT(f.host[0] == n * 0.5f && d.host[0] == n * 0.25 && l.host[0] == (unsigned long long)n << 33 && l.host[1] == (unsigned long long)(n - 1) << 32);
    return true;
}
__global__ void returned_values(int *slots, int *seen) {
    int k = atomicAdd(slots, 1);
    atomicAdd(&seen[k], 1);
}
TEST(atomic_results_are_unique) {
    Array<int> slot(1), seen(1000);
    returned_values<<<8, 125>>>(slot.device, seen.device);
    if (!finished()) return false;
    return equal(seen.down(), [](size_t) { return 1; });
}
__global__ void histogram(const unsigned char *in, int *out, int n) {
    __shared__ int bins[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}
TEST(shared_atomics_histogram) {
    const int n = 10000;
    Array<unsigned char> in(n, [](size_t i) { return (unsigned char)(noise(i) % 200); }, 0);
    Array<int> out(256);
    histogram<<<4, 96>>>(in.device, out.device, n);
    if (!finished()) return false;
    std::vector<int> want(256);
    for (auto c : in.host) want[c]++;
    return equal(out.down(), [&](size_t i) { return want[i]; });
}
__global__ void compare_and_swap(float *maximum, const float *v, unsigned long long *wide, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int *p = (int *)maximum, old = *p, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= v[i]) break;
        old = atomicCAS(p, assumed, __float_as_int(v[i]));
    } while (old != assumed);
    unsigned long long w = *wide, seen;
    do {
        seen = w;
        w = atomicCAS(wide, seen, seen + i);
    } while (w != seen);
}
TEST(compare_and_swap_loops) {
    const int n = 300;
    Array<float> v(n, [](size_t i) { return fabsf(uniform(i)); }, 0), maximum(1);
    Array<unsigned long long> wide(1);
    compare_and_swap<<<3, 100>>>(maximum.device, v.device, wide.device, n);
    if (!finished()) return false;
    float m = 0;
    for (float x : v.host) m = fmaxf(m, x);
    maximum.down(), wide.down();
    EXPECT(maximum.host[0] == m && wide.host[0] == n * (n - 1) / 2);
    return true;
}
__global__ void lock(int *mutex, int *value) {
    // One thread of each warp takes the lock.
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(mutex, 0, 1) != 0) {}
        __threadfence();
        int v = *(volatile int *)value;
        *(volatile int *)value = v + 1;
        __threadfence();
        atomicExch(mutex, 0);
    }
}
TEST(spin_lock_between_blocks) {
    Array<int> mutex(1), value(1);
    lock<<<20, 64>>>(mutex.device, value.device);
    if (!finished()) return false;
    EXPECT(value.down()[0] == 40);
    return true;
}
__global__ void last_block(const int *in, int *partial, unsigned *arrived, int *total) {
    __shared__ int sum;
    __shared__ bool last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int t = 0;
        for (int i = 0; i < gridDim.x; i++) t += ((volatile int *)partial)[i];
        *total = t;
    }
}
TEST(last_block_sums_up) {
    Array<int> in(512, [](size_t i) { return (int)i; }, 0), partial(8), total(1);
    Array<unsigned> arrived(1);
    last_block<<<8, 64>>>(in.device, partial.device, arrived.device, total.device);
    if (!finished()) return false;
    EXPECT(total.down()[0] == 511 * 256);
    return true;
}
struct Node {
    int value;
    Node *next;
};
__global__ void device_heap(int *out) {
    Node *head = nullptr;
    for (int i = 0; i < 5; i++) {
        Node *n = (Node *)malloc(sizeof(Node));
        n->value = threadIdx.x * 10 + i, n->next = head;
        head = n;
    }
    int sum = 0;
    while (head) {
        Node *n = head->next;
        sum += head->value;
        free(head);
        head = n;
    }
    int *block = new int[4];
    block[3] = sum;
    out[threadIdx.x] = block[3];
    delete[] block;
}
TEST(malloc_and_free_in_kernels) {
    Array<int> out(40);
    device_heap<<<1, 40>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return (int)i * 50 + 10; });
}
struct Parameters {
    float scale[8];
    int offset;
    char flag;
    double bias;
};
__global__ void by_value(Parameters p, const float *in, float *out, short extra) {
    int i = threadIdx.x;
    out[i] = in[i] * p.scale[i & 7] + p.offset + (float)p.bias + p.flag + extra;
}
TEST(parameters_by_value) {
    Parameters p = {{1, 2, 3, 4, 5, 6, 7, 8}, 100, 3, 0.5};
    Array<float> in(64, [](size_t i) { return (float)i; }, 0), out(64);
    by_value<<<1, 64>>>(p, in.device, out.device, (short)-2);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { return (float)i * p.scale[i & 7] + 100 + 0.5f + 3 - 2; });
}
__global__ void volatile_and_restrict(volatile int *v, const int *__restrict__ r, int *out) {
    int i = threadIdx.x;
    v[i] = r[i] * 2;
    out[i] = v[i] + __ldg(&r[(i + 1) & 31]);
}
TEST(volatile_and_read_only_loads) {
    Array<int> v(32), r(32, [](size_t i) { return (int)i * 5; }, 0), out(32);
    volatile_and_restrict<<<1, 32>>>(v.device, r.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { return (int)i * 10 + (int)((i + 1) & 31) * 5; });
}
__global__ void large_grid(int *out, int n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (int)(i * i % 1000003);
}
TEST(many_blocks_with_a_partial_last_one) {
    const int n = 100001;
    Array<int> out(n);
    large_grid<<<(n + 255) / 256, 256>>>(out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return (int)((long long)i * (long long)i % 1000003); });
}
__global__ void aligned_dynamic(int *out) {
    __shared__ int before;
    extern __shared__ __align__(128) unsigned char aligned_bytes[];
    before = 1;
    aligned_bytes[255] = 7;
    __syncthreads();
    out[0] = before + aligned_bytes[255];
    out[1] = (int)(__cvta_generic_to_shared(aligned_bytes) % 128);
}
TEST(dynamic_shared_memory_is_aligned_as_declared) {
    Array<int> out(2);
    aligned_dynamic<<<1, 1, 256>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) { return i ? 0 : 8; });
}
// One generic address, another place for each thread: local memory.
__global__ void own_local_memory(int *out) {
    int a[2] = {(int)threadIdx.x * 3, (int)threadIdx.x * 5}, x, y;
    asm volatile("ld.u32 %0, [%2];\n\tld.u32 %1, [%2+4];" : "=r"(x), "=r"(y) : "l"(a) : "memory");
    out[threadIdx.x] = x + 1000 * y;
}
TEST(generic_loads_from_local_memory) {
    Array<int> out(64);
    own_local_memory<<<1, 64>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) { return (int)i * 5003; });
}
// One, two and four words a lane, at places of which the compiler knows nothing: from two arrays in turn, and from shared
// memory, by all lanes and by some.
__host__ __device__ int weigh(int v) { return v; }
__host__ __device__ int weigh(int2 v) { return v.x + 3 * v.y; }
__host__ __device__ int weigh(int4 v) { return v.x + 3 * v.y + 5 * v.z + 7 * v.w; }
template <class T> __global__ void words_anywhere(const T *first, const T *second, const int *place, int *out) {
    __shared__ T tile[64];
    for (int i = threadIdx.x; i < 64; i += 32) tile[i] = first[i];
    __syncthreads();
    const int at = place[threadIdx.x];
    int sum = 11 * weigh(tile[at]);
    for (int turn = 0; turn < 4; turn++) sum += (turn + 1) * weigh((turn % 2 ? second : first)[at]);
    if (at % 3) sum += 13 * weigh(first[at ^ 1]) + 17 * weigh(tile[at ^ 1]);
    out[threadIdx.x] = sum;
}
template <class T> static bool read_words_anywhere() {
    int numbers[2][64 * sizeof(T) / 4];
    T arrays[2][64];
    for (int a = 0; a < 2; a++)
        for (size_t i = 0; i < 64 * sizeof(T) / 4; i++) numbers[a][i] = (int)(noise(1000 * a + i) & 0xfff);
    memcpy(arrays, numbers, sizeof arrays);
    Array<T> first(64, [&](size_t i) { return arrays[0][i]; }, 0), second(64, [&](size_t i) { return arrays[1][i]; }, 0);
    const std::function<int(int)> places[] = {[](int) { return 5; }, [](int i) { return i; }, [](int i) { return 2 * i + 1; },
                                              [](int i) { return 62 - 2 * i; }, [](int i) { return i / 8 * 9; },
                                              [](int i) { return (int)(noise(i) & 63); }};
    for (const auto &place : places) {
        Array<int> at(32, [&](size_t i) { return place((int)i); }, 0), out(32);
        words_anywhere<T><<<1, 32>>>(first.device, second.device, at.device, out.device);
        if (!finished()) return false;
        const bool same = equal(out.down(), [&](size_t i) {
            const int k = at.host[i];
            const int others = k % 3 ? 30 * weigh(arrays[0][k ^ 1]) : 0;
            return 15 * weigh(arrays[0][k]) + 6 * weigh(arrays[1][k]) + others;
        });
        if (!same) return false;
    }
    return true;
}
TEST(words_at_any_places) { return read_words_anywhere<int>() && read_words_anywhere<int2>() && read_words_anywhere<int4>(); }
