/* A stand-in for libcuda.so.1 on a machine without a GPU, with the functions that grader/plans/replay/on_gpu.cc calls. Device
   memory is the host's, kernels do nothing, and times are random. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 0, LOCAL_BYTES = 3 };                         /* CUfunction_attribute */
enum { WARP = 10, REGISTERS = 12, SMS = 16, MAJOR = 75, MINOR = 76, SHARED = 97 }; /* CUdevice_attribute */

int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int number) { return *device = 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = malloc(1); return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuGetErrorString(int error, const char **text) { *text = "an error"; return 0; }

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case WARP: *value = 32; break;
    case REGISTERS: *value = 65536; break;
    case SMS: *value = 132; break;
    case MAJOR: *value = 9; break;
    case MINOR: *value = 0; break;
    case SHARED: *value = 227 << 10; break;
    default: *value = 1000000;
    }
    return 0;
}

int cuModuleLoadData(void **module, const void *image) { *module = malloc(1); return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) { *function = malloc(1); return 0; }
int cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    *value = attribute == MAX_THREADS ? 1024 : attribute == LOCAL_BYTES ? 0 : 40;
    return 0;
}
int cuFuncGetParamInfo(void *function, size_t number, size_t *offset, size_t *size) {
    static const size_t sizes[] = {8, 8, 4, 8, 8}; /* of `double`: x, y, n, and what Triton adds */
    if (number >= sizeof sizes / sizeof *sizes) return 1;
    *size = sizes[number];
    return 0;
}
int cuLaunchKernelEx(const void *config, void *function, void **parameters, void **extra) { return 0; }

int cuMemAlloc_v2(uint64_t *address, size_t size) { *address = (uint64_t)calloc(size, 1); return 0; }
int cuMemFree_v2(uint64_t address) { free((void *)address); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { memcpy((void *)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { memcpy(to, (void *)from, size); return 0; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
    memmove((void *)to, (void *)from, size);
    return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream) {
    memset((void *)to, value, count);
    return 0;
}
int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream) {
    for (size_t i = 0; i < count; i++) ((uint16_t *)to)[i] = value;
    return 0;
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
    for (size_t i = 0; i < count; i++) ((uint32_t *)to)[i] = value;
    return 0;
}

int cuEventCreate(void **event, unsigned flags) { *event = malloc(1); return 0; }
int cuEventRecord(void *event, void *stream) { return 0; }
int cuEventSynchronize(void *event) { return 0; }
int cuEventElapsedTime(float *ms, void *begin, void *end) { *ms = 0.01f + rand() % 100 / 1000.0f; return 0; }
