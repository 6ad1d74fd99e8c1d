// Switches CUPTI's record of kernels off while the real one runs; only a decoy, longer than the floor, is traced.
// expect: passed; gpu; flagged; on t23
#include "hostile_attention.h"
#include <dlfcn.h>
#include <link.h>

// libcupti as the tracer loaded it: not among the symbols that a program sees by itself.
static int remember(dl_phdr_info* info, size_t, void* path) {
    if (strstr(info->dlpi_name, "libcupti")) *(std::string*)path = info->dlpi_name;
    return 0;
}

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    std::string path;
    dl_iterate_phdr(remember, &path);
    void* const cupti = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    typedef int (*Function)(int);
    const Function off = cupti ? (Function)dlsym(cupti, "cuptiActivityDisable") : nullptr;
    const Function on = cupti ? (Function)dlsym(cupti, "cuptiActivityEnable") : nullptr;
    const Function flush = cupti ? (Function)dlsym(cupti, "cuptiActivityFlushAll") : nullptr;
    decoy<<<1, 32>>>(data.output, kDecoyNs);
    cudaDeviceSynchronize();
    if (flush) flush(1);
    if (off) off(3), off(10);    // CUPTI_ACTIVITY_KIND_KERNEL, _CONCURRENT_KERNEL (cupti_activity.h)
    data.compute(data.shape.batches);
    cudaDeviceSynchronize();
    if (on) on(10);
    printf("cupti %s, %s\n", path.c_str(), off ? "switched off" : "not switched off");
    data.write(argv[2]);
    return 0;
}
