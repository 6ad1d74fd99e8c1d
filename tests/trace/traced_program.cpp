// A "CUDA program" for the fake CUPTI: plays the part named by its first argument. The tracer is loaded the way the
// driver does it.

#include "fake_cupti.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::string part = argv[1];
    void* const tracer = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
    if (!tracer) return std::fprintf(stderr, "%s\n", dlerror()), 2;
    auto* const inject = reinterpret_cast<int (*)()>(dlsym(tracer, "InitializeInjection"));
    if (!inject || inject() != 1) return 2;

    if (part == "no_context") return 0;
    fake_context_created();

    if (part == "everything") {
        fake_memcpy(1, 4096);
        fake_memset(512);
        fake_kernel("_Z9attentionPKfPfif", 100, 400);
        fake_memcpy(2, 1024);
    } else if (part == "many_kernels") {
        for (uint64_t i = 0; i < 100000; ++i) fake_kernel("_Z9attentionPKfPfif", 10 * i + 1, 10 * i + 6);
    } else if (part == "turns") {
        for (uint64_t i = 0; i < 5; ++i) {
            fake_kernel("_Z1aPf", 100 * i + 1, 100 * i + 31);
            fake_kernel("_Z1bPf", 100 * i + 21, 100 * i + 51, 8);
        }
        fake_kernel("_Z1aPf", 51, 61);    // CUPTI hands it over late
        fake_memset(512);
    } else if (part == "untimed_kernel") {
        fake_kernel("_Z9attentionPKfPfif", 0, 0);
    } else if (part == "errors") {
        fake_runtime_call("cudaMalloc", 2, "cuMemAlloc_v2", 2);
        fake_runtime_call("cudaFree", 0, "cuMemFree_v2", 1);
        fake_driver_call("cuLaunchKernel", 700);
        fake_runtime_call("cudaEventQuery", 600);
        fake_driver_call("cuStreamQuery", 600);
        fake_runtime_call("cudaGetLastError", 9);
        fake_driver_call("cuGetProcAddress_v2", 500);
        fake_runtime_call("cudaLaunchKernel", 9);
    } else if (part == "endless_errors") {
        for (int i = 0; i < 5000; ++i) fake_runtime_call("cudaFree", 1);
    } else if (part == "reset") {
        fake_kernel("_Z9attentionPKfPfif", 100, 400);
        fake_context_destroyed();
    } else if (part == "fork") {
        const pid_t child = fork();
        fake_kernel(child == 0 ? "in_child" : "in_parent", 100, 400);
        if (child == 0) {
            fake_runtime_call("cudaMalloc", 2);
            std::exit(0);    // runs the atexit handlers that it inherited
        }
        int status = 0;
        waitpid(child, &status, 0);
        return status == 0 ? 0 : 3;
    } else if (part == "killed") {
        fake_runtime_call("cudaMalloc", 2);
        std::abort();
    } else if (part == "quick_exit") {
        fake_kernel("_Z9attentionPKfPfif", 100, 400);
        std::quick_exit(0);
    }
    return 0;
}
