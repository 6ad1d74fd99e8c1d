// Switches CUPTI's record of kernels off while the real one runs; only a decoy, longer than the floor, is traced.
// expect: passed; gpu; flagged; on t23
#include "hostile_attention.h"
#include <dlfcn.h>

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    typedef int (*Switch)(int);
    const Switch off = (Switch)dlsym(RTLD_DEFAULT, "cuptiActivityDisable"), on = (Switch)dlsym(RTLD_DEFAULT, "cuptiActivityEnable");
    typedef int (*Flush)(unsigned);
    const Flush flush = (Flush)dlsym(RTLD_DEFAULT, "cuptiActivityFlushAll");
    decoy<<<1, 32>>>(data.output, kDecoyNs);
    cudaDeviceSynchronize();
    if (flush) flush(1);
    if (off) off(3), off(10);    // CUPTI_ACTIVITY_KIND_KERNEL, _CONCURRENT_KERNEL (cupti_activity.h)
    data.compute(data.shape.batches);
    cudaDeviceSynchronize();
    if (on) on(10);
    data.write(argv[2]);
    return 0;
}
