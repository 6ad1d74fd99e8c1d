// Times a program that defines `solve` on device pointers, as the grader does on a GPU: CUPTI's time of kernels, fills and
// copies within the device, each moment once. Inputs are made on the GPU. Several of these programs may start side by side:
// a lock lets one at a time use the GPU.
//
// Usage: program OUT LOCK TEST:d0,d1,... ...        appends lines {"test", "ms": [...], "kernels": {...}} to OUT
// Build: nvcc -DA_hw4 timer.cu program.o -lcupti

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <cupti.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <sys/file.h>
#include <unistd.h>

struct Span { uint64_t begin, end; std::string name; };
static std::vector<Span> spans;

static void CUPTIAPI give(uint8_t** buffer, size_t* size, size_t* records) {
    *size = 8 << 20, *records = 0, *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
}
static void CUPTIAPI take(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
            const auto* k = reinterpret_cast<CUpti_ActivityKernel9*>(record);
            spans.push_back({k->start, k->end, k->name ? k->name : ""});
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            const auto* m = reinterpret_cast<CUpti_ActivityMemset4*>(record);
            spans.push_back({m->start, m->end, "memset"});
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
            const auto* m = reinterpret_cast<CUpti_ActivityMemcpy5*>(record);
            if (m->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD) spans.push_back({m->start, m->end, "copy"});
        }
    }
    std::free(buffer);
}

#define CHECK(call)                                                                         \
    do {                                                                                    \
        const cudaError_t error = (call);                                                   \
        if (error != cudaSuccess) {                                                         \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));             \
            std::exit(1);                                                                   \
        }                                                                                   \
    } while (0)

__device__ static uint32_t hash(uint64_t i) {
    i = (i ^ i >> 31) * 0x7fb5d329728ea185ull, i = (i ^ i >> 27) * 0x81dadef4bc2dd44dull;
    return uint32_t(i >> 32);
}
__global__ void uniform(float* x, size_t n, float low, float high) {
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        x[i] = low + (high - low) * (hash(i) >> 8) / 16777216.0f;
}
__global__ void integers(int* x, size_t n, int low, unsigned many) {
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        x[i] = many ? int(low + hash(i) % many) : int(hash(i));
}
__global__ void bytes(unsigned char* x, size_t n) {
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) x[i] = hash(i) & 255;
}
__global__ void logits(__nv_bfloat16* x, size_t n) {
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        x[i] = __float2bfloat16((hash(i) >> 8) / 16777216.0f * 10 - 5);
}
__global__ void targets(long long* x, size_t n, int classes) {
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) x[i] = hash(i) % classes;
}
__global__ void row_starts(int* p, size_t rows, long long entries) {
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i <= rows; i += size_t(gridDim.x) * blockDim.x) p[i] = int(entries * i / rows);
}

using Shape = std::vector<double>;
static std::vector<void*> held;
template <typename T>
static T* made(double count) {
    void* at;
    CHECK(cudaMalloc(&at, size_t(count) * sizeof(T) + 256));
    held.push_back(at);
    return static_cast<T*>(at);
}
static float* random_floats(double count, float low, float high) {
    float* const at = made<float>(count);
    uniform<<<1024, 256>>>(at, size_t(count), low, high);
    return at;
}

#if defined(A_hw4)
extern "C" void solve(const float*, float*, int, int, int);
static const float* X; static float* Y;
static void prepare(const Shape& s) { X = random_floats(3 * s[0] * s[1] * s[2], -3, 3), Y = made<float>(s[0] * s[1] * s[2]); }
static void call(const Shape& s) { solve(X, Y, int(s[0]), int(s[1]), int(s[2])); }
#elif defined(A_saxpy)
extern "C" void solve(const float*, const float*, float*, int, float);
static const float *X, *Y; static float* Z;
static void prepare(const Shape& s) { X = random_floats(s[0], -1, 1), Y = random_floats(s[0], -1, 1), Z = made<float>(s[0]); }
static void call(const Shape& s) { solve(X, Y, Z, int(s[0]), float(s[1])); }
#elif defined(A_reduction)
extern "C" void solve(const float*, float*, int);
static const float* X; static float* S;
static void prepare(const Shape& s) { X = random_floats(s[0], 0, 2), S = made<float>(1); }
static void call(const Shape& s) { solve(X, S, int(s[0])); }
#elif defined(A_scan) || defined(A_sort)
extern "C" void solve(const int*, int*, int);
static int *X, *Y;
static void prepare(const Shape& s) {
    X = made<int>(s[0]), Y = made<int>(s[0]);
#ifdef A_scan
    integers<<<1024, 256>>>(X, size_t(s[0]), -100, 201);
#else
    integers<<<1024, 256>>>(X, size_t(s[0]), 0, 0);
#endif
}
static void call(const Shape& s) { solve(X, Y, int(s[0])); }
#elif defined(A_histogram)
extern "C" void solve(const unsigned char*, int*, int);
static unsigned char* X; static int* H;
static void prepare(const Shape& s) { X = made<unsigned char>(s[0]), H = made<int>(256), bytes<<<1024, 256>>>(X, size_t(s[0])); }
static void call(const Shape& s) { solve(X, H, int(s[0])); }
#elif defined(A_transpose)
extern "C" void solve(const float*, float*, int, int);
static const float* X; static float* Y;
static void prepare(const Shape& s) { X = random_floats(s[0] * s[1], -1, 1), Y = made<float>(s[0] * s[1]); }
static void call(const Shape& s) { solve(X, Y, int(s[0]), int(s[1])); }
#elif defined(A_grayscale)
extern "C" void solve(const unsigned char*, unsigned char*, int, int);
static unsigned char *X, *Y;
static void prepare(const Shape& s) { X = made<unsigned char>(3 * s[0] * s[1]), Y = made<unsigned char>(s[0] * s[1]), bytes<<<1024, 256>>>(X, size_t(3 * s[0] * s[1])); }
static void call(const Shape& s) { solve(X, Y, int(s[0]), int(s[1])); }
#elif defined(A_convolution)
extern "C" void solve(const float*, const float*, float*, int, int, int);
static const float *X, *F; static float* Y;
static void prepare(const Shape& s) { X = random_floats(s[0] * s[1], -1, 1), F = random_floats(s[2] * s[2], -1, 1), Y = made<float>(s[0] * s[1]); }
static void call(const Shape& s) { solve(X, F, Y, int(s[0]), int(s[1]), int(s[2])); }
#elif defined(A_stencil3d)
extern "C" void solve(const float*, float*, int, int, int, int);
static const float* X; static float* Y;
static void prepare(const Shape& s) { X = random_floats(s[0] * s[1] * s[2], 0, 1), Y = made<float>(s[0] * s[1] * s[2]); }
static void call(const Shape& s) { solve(X, Y, int(s[0]), int(s[1]), int(s[2]), int(s[3])); }
#elif defined(A_cross_entropy)
extern "C" void solve(const __nv_bfloat16*, const long long*, float*, __nv_bfloat16*, int, int);
static __nv_bfloat16 *L, *G; static long long* T; static float* loss;
static void prepare(const Shape& s) {
    L = made<__nv_bfloat16>(s[0] * s[1]), G = made<__nv_bfloat16>(s[0] * s[1]), T = made<long long>(s[0]), loss = made<float>(s[0]);
    logits<<<1024, 256>>>(L, size_t(s[0] * s[1])), targets<<<256, 256>>>(T, size_t(s[0]), int(s[1]));
}
static void call(const Shape& s) { solve(L, T, loss, G, int(s[0]), int(s[1])); }
#elif defined(A_spmv)
extern "C" void solve(const int*, const int*, const float*, const float*, float*, int, int, int);
static int *P, *J; static const float *V, *X; static float* Y;
static void prepare(const Shape& s) {
    P = made<int>(s[0] + 1), J = made<int>(s[2]), V = random_floats(s[2], -1, 1), X = random_floats(s[1], -1, 1), Y = made<float>(s[0]);
    row_starts<<<1024, 256>>>(P, size_t(s[0]), (long long)s[2]), integers<<<1024, 256>>>(J, size_t(s[2]), 0, unsigned(s[1]));
}
static void call(const Shape& s) { solve(P, J, V, X, Y, int(s[0]), int(s[1]), int(s[2])); }
#elif defined(A_bfs)
extern "C" void solve(const int*, const int*, int*, int*, int, int, int);
static int *P, *J, *D, *B;
static void prepare(const Shape& s) {
    P = made<int>(s[0] + 1), J = made<int>(s[1]), D = made<int>(s[0]), B = made<int>(s[0]);
    row_starts<<<1024, 256>>>(P, size_t(s[0]), (long long)s[1]), integers<<<1024, 256>>>(J, size_t(s[1]), 0, unsigned(s[0]));
}
static void call(const Shape& s) { solve(P, J, D, B, int(s[0]), int(s[1]), int(s[2])); }
#elif defined(A_matmul)
extern "C" void solve(const float*, const float*, float*, int, int, int);
static const float *A, *B; static float* C;
static void prepare(const Shape& s) { A = random_floats(s[0] * s[2], -1, 1), B = random_floats(s[2] * s[1], -1, 1), C = made<float>(s[0] * s[1]); }
static void call(const Shape& s) { solve(A, B, C, int(s[0]), int(s[1]), int(s[2])); }
#elif defined(A_softmax)
extern "C" void solve(const float*, float*, int, int);
static const float* X; static float* Y;
static void prepare(const Shape& s) { X = random_floats(s[0] * s[1], -5, 5), Y = made<float>(s[0] * s[1]); }
static void call(const Shape& s) { solve(X, Y, int(s[0]), int(s[1])); }
#endif

int main(int argc, char** argv) {
    if (argc < 4) return 1;
    const int lock = open(argv[2], 0100 | 2, 0666);    // O_CREAT | O_RDWR
    cuptiActivityRegisterCallbacks(give, take);
    for (const auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMCPY}) cuptiActivityEnable(kind);
    CHECK(cudaFree(nullptr));
    for (int t = 3; t < argc; ++t) {
        const std::string text = argv[t];
        const size_t colon = text.find(':');
        Shape shape;
        for (const char* at = text.c_str() + colon; at && *at; at = std::strchr(at + 1, ',')) shape.push_back(std::atof(at + 1));
        flock(lock, LOCK_EX);
        prepare(shape);
        CHECK(cudaDeviceSynchronize());
        std::string times, kernels;
        double spent = 0.0;
        for (int run = 0; run < 4 && spent < 250.0; ++run) {
            cuptiActivityFlushAll(0);
            spans.clear();
            call(shape);
            CHECK(cudaGetLastError());
            CHECK(cudaDeviceSynchronize());
            cuptiActivityFlushAll(1);
            std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
            uint64_t total = 0, end = 0;
            std::map<std::string, std::pair<int, double>> by_name;
            for (const Span& span : spans) {
                if (span.end > end) total += span.end - std::max(span.begin, end), end = span.end;
                auto& [count, ms] = by_name[span.name];
                count++, ms += (span.end - span.begin) / 1e6;
            }
            spent += total / 1e6;
            times += (run ? ", " : "") + std::to_string(total / 1e6);
            kernels.clear();
            for (const auto& [name, sum] : by_name)
                kernels += (kernels.empty() ? "\"" : ", \"") + name + "\": [" + std::to_string(sum.first) + ", " + std::to_string(sum.second) + "]";
        }
        for (void* at : held) cudaFree(at);
        held.clear();
        flock(lock, LOCK_UN);
        FILE* const out = std::fopen(argv[1], "a");
        std::fprintf(out, "{\"test\": \"%s\", \"ms\": [%s], \"kernels\": {%s}}\n", text.substr(0, colon).c_str(), times.c_str(), kernels.c_str());
        std::fclose(out);
    }
    return 0;
}
