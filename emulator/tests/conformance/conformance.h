// One CUDA program per file, one feature per TEST. A test checks its results against arithmetic done on the host and
// returns whether they agree. `./program` runs all, `./program NAME` one; the exit code is the number of failures.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

struct Test {
    const char *name;
    bool (*run)();
    Test *next;
    static Test *&first() {
        static Test *head = nullptr;
        return head;
    }
    Test(const char *n, bool (*f)()) : name(n), run(f), next(nullptr) {
        Test **p = &first();
        while (*p) p = &(*p)->next;
        *p = this;
    }
};
#define TEST(name)                            \
    static bool test_##name();                \
    static Test entry_##name(#name, test_##name); \
    static bool test_##name()

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t e_ = (call);                                                             \
        if (e_ != cudaSuccess) {                                                             \
            printf("  %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_));   \
            return false;                                                                    \
        }                                                                                    \
    } while (0)
#define EXPECT(condition)                                                         \
    do {                                                                          \
        if (!(condition)) {                                                       \
            printf("  %s:%d: expected %s\n", __FILE__, __LINE__, #condition);     \
            return false;                                                         \
        }                                                                         \
    } while (0)

// A device array that copies itself to the host.
template <class T> struct Array {
    T *device = nullptr;
    std::vector<T> host;
    explicit Array(size_t n, T value = T()) : host(n, value) {
        cudaMalloc(&device, n * sizeof(T));
        up();
    }
    template <class F> Array(size_t n, F fill, int) : host(n) {
        for (size_t i = 0; i < n; i++) host[i] = fill(i);
        cudaMalloc(&device, n * sizeof(T));
        up();
    }
    Array(const Array &) = delete;
    ~Array() { cudaFree(device); }
    void up() { cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice); }
    std::vector<T> &down() {
        cudaMemcpy(host.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost);
        return host;
    }
};

inline bool finished() {
    cudaError_t e = cudaDeviceSynchronize();
    if (e == cudaSuccess) e = cudaGetLastError();
    if (e != cudaSuccess) printf("  %s\n", cudaGetErrorString(e));
    return e == cudaSuccess;
}

// Whether f(i) == got[i] for all i, bit by bit; says where not.
template <class T, class F> bool equal(const std::vector<T> &got, F f) {
    for (size_t i = 0; i < got.size(); i++) {
        T want = (T)f(i);
        if (memcmp(&want, &got[i], sizeof(T)) != 0) {
            printf("  element %zu: got %.9g (0x%llx), expected %.9g\n", i, (double)got[i], (unsigned long long)(uint64_t)got[i], (double)want);
            return false;
        }
    }
    return true;
}
template <class T, class F> bool close(const std::vector<T> &got, F f, double relative, double absolute = 0) {
    for (size_t i = 0; i < got.size(); i++) {
        double want = (double)f(i), have = (double)got[i];
        if (std::isnan(want) && std::isnan(have)) continue;
        if (want == have) continue;
        if (!(fabs(have - want) <= relative * fabs(want) + absolute)) {
            printf("  element %zu: got %.9g, expected %.9g\n", i, have, want);
            return false;
        }
    }
    return true;
}

inline uint32_t noise(uint64_t i) {
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 31;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 29;
    return (uint32_t)(x ^ x >> 32);
}
inline uint64_t noise64(uint64_t i) { return (uint64_t)noise(2 * i) << 32 | noise(2 * i + 1); }
inline float uniform(uint64_t i, float low = -3, float high = 3) { return low + (high - low) * (float)(noise(i) >> 8) / 16777216.0f; }

#ifndef NO_MAIN
int main(int argc, char **argv) {
    int failed = 0, run = 0;
    for (Test *t = Test::first(); t; t = t->next) {
        if (argc > 1 && strcmp(argv[1], "--list") == 0) {
            printf("%s\n", t->name);
            continue;
        }
        if (argc > 1 && strcmp(argv[1], t->name) != 0) continue;
        bool ok = t->run();
        printf("%s %s\n", t->name, ok ? "ok" : "FAILED");
        failed += !ok;
        run++;
    }
    if (argc > 1 && strcmp(argv[1], "--list") == 0) return 0;
    if (run == 0) printf("no such test\n");
    return run == 0 ? 99 : failed;
}
#endif
