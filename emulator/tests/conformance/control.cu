// Control flow: divergence, loops, switches, calls, recursion, function pointers, barriers, warp communication.
#include "conformance.h"

__global__ void nested(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r = 0;
    if (v & 1) {
        if (v & 2) r = v * 3;
        else {
            for (int k = 0; k < (v & 7); k++) {
                if (k == 5) break;
                if ((v + k) % 3 == 0) continue;
                r += k * v;
            }
            r -= 1;
        }
    } else if (v % 5 == 0) {
        r = -v;
        while (r % 7) r++;
    } else
        r = v / 2;
    out[i] = r + (v > 500 ? 1 : 0);
}
static int nested_host(int v) {
    int r = 0;
    if (v & 1) {
        if (v & 2) r = v * 3;
        else {
            for (int k = 0; k < (v & 7); k++) {
                if (k == 5) break;
                if ((v + k) % 3 == 0) continue;
                r += k * v;
            }
            r -= 1;
        }
    } else if (v % 5 == 0) {
        r = -v;
        while (r % 7) r++;
    } else
        r = v / 2;
    return r + (v > 500 ? 1 : 0);
}
TEST(nested_branches_and_loops) {
    const int n = 999;
    Array<int> in(n, [](size_t i) { return (int)(noise(i) % 1000); }, 0), out(n);
    nested<<<8, 128>>>(in.device, out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { return nested_host(in.host[i]); });
}
__global__ void collatz(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long x = i + 1;
    int steps = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        steps++;
    }
    if (i < n) out[i] = steps;
}
TEST(loops_of_different_lengths) {
    const int n = 700;
    Array<int> out(n);
    collatz<<<(n + 63) / 64, 64>>>(out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { long long x = (long long)i + 1; int s = 0; while (x != 1) x = x & 1 ? 3 * x + 1 : x / 2, s++; return s; });
}
__host__ __device__ __noinline__ int tripled(int x) { return 3 * x + 1; }
__host__ __device__ __noinline__ int halved(int x) { return x / 2; }
__host__ __device__ __noinline__ unsigned collatz_checksum(int x) {
    unsigned sum = 0;
    do {
        if (x & 1)
            x = tripled(x);  // calls, so that a branch it stays
        else
            x = halved(x);
        sum = sum * 5 + x;
    } while (x > 1);
    return sum;
}
__global__ void collatz_checksums(const int *in, unsigned *out) { out[threadIdx.x] = collatz_checksum(in[threadIdx.x]); }
TEST(both_sides_of_a_branch_in_a_loop_that_lanes_leave_at_different_times) {
    Array<int> in(64, [](size_t i) { return (int)i + 1; }, 0);
    Array<unsigned> out(64);
    collatz_checksums<<<1, 64>>>(in.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { return collatz_checksum(in.host[i]); });
}
__global__ void switches(const int *in, int *out, int n, int uniform_choice) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r;
    switch (v % 9) {
    case 0: r = v + 1; break;
    case 1: r = v * 2; break;
    case 2: r = v ^ 0x55; // falls through
    case 3: r = v - 7; break;
    case 4: r = v << 2; break;
    case 5: r = -v; break;
    case 6: r = v * v; break;
    case 7: r = v >> 1; break;
    default: r = 12345; break;
    }
    switch (uniform_choice) {
    case 0: r += 1; break;
    case 1: r *= 3; break;
    case 2: r -= 9; break;
    case 3: r ^= 3; break;
    case 4: r |= 8; break;
    case 5: r &= 0xfff; break;
    }
    out[i] = r;
}
TEST(switches) {
    const int n = 500;
    Array<int> in(n, [](size_t i) { return (int)(noise(i) % 10000); }, 0), out(n);
    for (int choice = 0; choice < 7; choice++) {
        switches<<<4, 128>>>(in.device, out.device, n, choice);
        if (!finished()) return false;
        bool ok = equal(out.down(), [&](size_t i) {
            int v = in.host[i], r;
            switch (v % 9) {
            case 0: r = v + 1; break;
            case 1: r = v * 2; break;
            case 2:
            case 3: r = v - 7; break;
            case 4: r = v << 2; break;
            case 5: r = -v; break;
            case 6: r = v * v; break;
            case 7: r = v >> 1; break;
            default: r = 12345; break;
            }
            return choice == 0 ? r + 1 : choice == 1 ? r * 3 : choice == 2 ? r - 9 : choice == 3 ? r ^ 3 : choice == 4 ? r | 8 : choice == 5 ? r & 0xfff : r;
        });
        if (!ok) return false;
    }
    return true;
}
struct Pair {
    float a;
    int b;
    double c;
};
__device__ __noinline__ Pair swapped(Pair p, char k, short s, const float *x) { return Pair{(float)p.b + x[k & 3], (int)p.a + s, p.c * 2}; }
__global__ void calls(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Pair p = {(float)i, i * 2, i * 0.5};
    if (i & 1) p = swapped(p, (char)i, (short)(i - 5), x);
    p = swapped(p, (char)(i + 1), (short)3, x);
    if (i < n) out[i] = p.a + (float)p.b + (float)p.c;
}
TEST(function_calls_with_structures) {
    Array<float> x(4, [](size_t i) { return (float)i * 10; }, 0), out(150);
    calls<<<2, 96>>>(x.device, out.device, 150);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t n) {
        int i = (int)n;
        Pair p = {(float)i, i * 2, i * 0.5};
        auto f = [&](Pair p, char k, short s) { return Pair{(float)p.b + x.host[k & 3], (int)p.a + s, p.c * 2}; };
        if (i & 1) p = f(p, (char)i, (short)(i - 5));
        p = f(p, (char)(i + 1), 3);
        return p.a + (float)p.b + (float)p.c;
    });
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursion(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }
TEST(recursion) {
    Array<int> out(50);
    recursion<<<1, 50>>>(out.device);
    if (!finished()) return false;
    std::function<int(int)> f = [&](int n) { return n < 2 ? n : f(n - 1) + f(n - 2); };
    return equal(out.down(), [&](size_t i) { return f((int)i % 12); });
}
__device__ __noinline__ void quicksort(int *a, int low, int high) {
    if (low >= high) return;
    int p = a[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (a[i] < p) i++;
        while (a[j] > p) j--;
        if (i <= j) {
            int t = a[i];
            a[i++] = a[j], a[j--] = t;
        }
    }
    quicksort(a, low, j);
    quicksort(a, i, high);
}
__global__ void sort_each(int *a, int n) { quicksort(a + threadIdx.x * n, 0, n - 1); }
TEST(recursion_with_divergence) {
    const int n = 60, threads = 40;
    Array<int> a(n * threads, [](size_t i) { return (int)(noise(i) % 500); }, 0);
    std::vector<int> want = a.host;
    for (int t = 0; t < threads; t++) std::sort(want.begin() + t * n, want.begin() + (t + 1) * n);
    sort_each<<<1, threads>>>(a.device, n);
    if (!finished()) return false;
    return equal(a.down(), [&](size_t i) { return want[i]; });
}
typedef float (*Operation)(float, float);
__device__ float add(float a, float b) { return a + b; }
__device__ float subtract(float a, float b) { return a - b; }
__device__ float multiply(float a, float b) { return a * b; }
__device__ Operation operations[3] = {add, subtract, multiply};
__global__ void pointers(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Operation chosen = operations[i % 3], same = operations[n % 3];
    if (i < n) out[i] = chosen(x[i], 2.0f) + same(x[i], 0.5f);
}
TEST(function_pointers) {
    const int n = 100;
    Array<float> x(n, [](size_t i) { return uniform(i); }, 0), out(n);
    pointers<<<2, 64>>>(x.device, out.device, n);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) { float v = x.host[i]; return (i % 3 == 0 ? v + 2.0f : i % 3 == 1 ? v - 2.0f : v * 2.0f) + (v - 0.5f); });
}
struct Shape {
    __device__ virtual float area() const { return 0; }
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
    float radius;
    __device__ explicit Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
};
__global__ void virtual_functions(float *out) {
    int i = threadIdx.x;
    Shape *s;
    if (i % 2) s = new Square((float)i);
    else s = new Circle((float)i);
    out[i] = s->area();
    delete s;
}
TEST(virtual_functions) {
    Array<float> out(40);
    virtual_functions<<<1, 40>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { float v = (float)i; return i % 2 ? v * v : 3.0f * v * v; });
}
__global__ void reduce(const float *in, float *out) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int step = 128; step > 0; step >>= 1) {
        if (t < step) s[t] += s[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
TEST(tree_reduction) {
    Array<float> in(1024, [](size_t i) { return (float)(noise(i) % 1000); }, 0), out(4);
    reduce<<<4, 256>>>(in.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t b) { float s = 0; for (int i = 0; i < 256; i++) s += in.host[b * 256 + i]; return s; });
}
__global__ void scan(const int *in, int *out, int n) {
    extern __shared__ int temp[];
    int t = threadIdx.x, a = 0, b = 1;
    temp[t] = in[t];
    for (int d = 1; d < n; d <<= 1) {
        __syncthreads();
        int v = t >= d ? temp[a * n + t - d] : 0;
        temp[b * n + t] = temp[a * n + t] + v;
        a ^= 1, b ^= 1;
    }
    __syncthreads();
    out[t] = temp[a * n + t];
}
TEST(prefix_sum) {
    const int n = 512;
    Array<int> in(n, [](size_t i) { return (int)(noise(i) % 100); }, 0), out(n);
    scan<<<1, n, 2 * n * sizeof(int)>>>(in.device, out.device, n);
    if (!finished()) return false;
    int s = 0;
    return equal(out.down(), [&](size_t i) { return s += in.host[i]; });
}
__device__ __noinline__ int neighbour(int *s, int v) {
    s[threadIdx.x] = v;
    __syncthreads();
    int r = s[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    return r;
}
__global__ void barrier_in_function(int *out) {
    __shared__ int s[128];
    int v = threadIdx.x;
    for (int i = 0; i < 5; i++) v = neighbour(s, v) + 1;
    out[threadIdx.x] = v;
}
TEST(barriers_inside_functions) {
    Array<int> out(100);
    barrier_in_function<<<1, 100>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return (int)((i + 5) % 100) + 5; });
}
__global__ void early_exit(int *out, int n) {
    __shared__ int s[256];
    int t = threadIdx.x;
    if (t >= n) return;
    s[t] = t;
    __syncthreads();
    out[t] = s[n - 1 - t];
}
TEST(barrier_after_threads_left) {
    Array<int> out(200);
    early_exit<<<1, 256>>>(out.device, 200);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return 199 - (int)i; });
}
__global__ void barrier_reductions(const int *in, int *out) {
    int t = threadIdx.x;
    int c = __syncthreads_count(in[t] > 50), a = __syncthreads_and(in[t] >= 0), o = __syncthreads_or(in[t] == 1000);
    out[t] = c * 4 + (a != 0) * 2 + (o != 0);
}
TEST(barriers_with_reductions) {
    Array<int> in(150, [](size_t i) { return (int)(noise(i) % 100); }, 0), out(150);
    barrier_reductions<<<1, 150>>>(in.device, out.device);
    if (!finished()) return false;
    int c = 0;
    for (int v : in.host) c += v > 50;
    return equal(out.down(), [&](size_t) { return c * 4 + 2; });
}
__global__ void named_barriers(int *out) {
    __shared__ int s[128];
    int t = threadIdx.x, half = t / 64;
    s[t] = t;
    asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
    int v = s[half * 64 + (t + 1) % 64];
    asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
    out[t] = v;
}
TEST(named_barriers_for_half_a_block) {
    Array<int> out(128);
    named_barriers<<<1, 128>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return (int)(i / 64 * 64 + (i + 1) % 64); });
}
__global__ void producer_consumer(int *out) {
    __shared__ int box;
    for (int i = 0; i < 4; i++) {
        if (threadIdx.x < 32) {
            if (threadIdx.x == 0) box = i * i;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
            asm volatile("bar.sync 2, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[i * 32 + threadIdx.x - 32] = box;
            asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
}
TEST(barrier_arrive_and_sync) {
    Array<int> out(128);
    producer_consumer<<<1, 64>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return (int)(i / 32 * (i / 32)); });
}
__global__ void grid_3d(int *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    int w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;
    out[(z * h + y) * w + x] = x + 100 * y + 10000 * z;
}
TEST(three_dimensional_grids_and_blocks) {
    Array<int> out(6 * 6 * 6);
    grid_3d<<<dim3(2, 3, 2), dim3(3, 2, 3)>>>(out.device);
    if (!finished()) return false;
    return equal(out.down(), [](size_t i) { return (int)(i % 6 + 100 * (i / 6 % 6) + 10000 * (i / 36)); });
}
// A register that is read before anything writes it: the sum may be anything, but the program is one.
__global__ void sum_from_nowhere(const float *in, float *sums, int *out, int n, int m) {
    float sum;
    for (int i = 0; i < n; i++) sum = sum * in[i] + in[threadIdx.x + i];
    if (m > 0) sums[threadIdx.x] = sum;
    out[threadIdx.x] = threadIdx.x + n;
}
TEST(a_sum_that_nothing_initialised_does_no_harm) {
    Array<float> in(64), sums(32);
    Array<int> out(32);
    sum_from_nowhere<<<1, 32>>>(in.device, sums.device, out.device, 9, 1);
    return finished() && equal(out.down(), [](size_t i) { return (int)i + 9; });
}
