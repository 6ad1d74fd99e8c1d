/* A GPU as a device, through CUDA's driver, which is opened when the program starts. HOW is not used. */
#include "device.h"

#include <cstdio>
#include <cuda.h>
#include <dlfcn.h>
#include <string>

static const unsigned STATIC_SHARED_LIMIT = 48 << 10;
static const unsigned PORTABLE_CLUSTER = 8;

static void *driver;
static CUstream stream = nullptr;
static std::vector<CUfunction> kernels_of_ours;
static std::vector<CUevent> events;

template <typename... Words> static void call(const char *name, Words... words) {
    auto function = (CUresult(*)(Words...))dlsym(driver, name);
    if (!function) failed(name, "CUDA's driver has no such function");
    CUresult code = function(words...);
    if (code == CUDA_SUCCESS) return;
    const char *text = nullptr;
    ((CUresult(*)(CUresult, const char **))dlsym(driver, "cuGetErrorString"))(code, &text);
    failed(name, text ? text : "unknown error");
}

void open_device(const char *) {
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver) failed("libcuda.so.1", dlerror());
    CUdevice device = 0;
    CUcontext context = nullptr;
    call("cuInit", 0u);
    call("cuDeviceGet", &device, 0);
    call("cuDevicePrimaryCtxRetain", &context, device);
    call("cuCtxSetCurrent", context);
}

void called_from(const char *, unsigned) {}

uint64_t allocate(size_t size) {
    CUdeviceptr made = 0;
    call("cuMemAlloc_v2", &made, size);
    return made;
}

void release(uint64_t address) { call("cuMemFree_v2", (CUdeviceptr)address); }
void upload(uint64_t to, const void *from, size_t size) { call("cuMemcpyHtoD_v2", (CUdeviceptr)to, from, size); }
void download(void *to, uint64_t from, size_t size) { call("cuMemcpyDtoH_v2", to, (CUdeviceptr)from, size); }
void copy(uint64_t to, uint64_t from, size_t size) {
    call("cuMemcpyDtoDAsync_v2", (CUdeviceptr)to, (CUdeviceptr)from, size, stream);
}

void fill(uint64_t to, unsigned width, uint64_t pattern, size_t count) {
    if (!count) return;
    CUdeviceptr at = to;
    unsigned low = (unsigned)pattern, high = (unsigned)(pattern >> 32);
    switch (width) {
    case 1: call("cuMemsetD8Async", at, (unsigned char)pattern, count, stream); break;
    case 2: call("cuMemsetD16Async", at, (unsigned short)pattern, count, stream); break;
    case 4: call("cuMemsetD32Async", at, low, count, stream); break;
    case 8:
        call("cuMemsetD2D32Async", at, (size_t)8, low, (size_t)1, count, stream);
        call("cuMemsetD2D32Async", at + 4, (size_t)8, high, (size_t)1, count, stream);
        break;
    default: failed("fill", "a pattern has 1, 2, 4 or 8 bytes");
    }
}

bool wants_poison() { return true; }

int load(const char *name, const void *binary, size_t, unsigned shared_bytes) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    call("cuModuleLoadData", &module, binary);
    call("cuModuleGetFunction", &function, module, name);
    if (shared_bytes > STATIC_SHARED_LIMIT)
        call("cuFuncSetAttribute", function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes);
    kernels_of_ours.push_back(function);
    return kernels_of_ours.size() - 1;
}

Attributes attributes(int kernel) {
    CUfunction function = kernels_of_ours[kernel];
    Attributes found;
    call("cuFuncGetAttribute", &found.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    call("cuFuncGetAttribute", &found.local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
    call("cuFuncGetAttribute", &found.most_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    return found;
}

std::vector<size_t> parameter_bytes(int kernel) {
    static auto of = (CUresult(*)(CUfunction, size_t, size_t *, size_t *))dlsym(driver, "cuFuncGetParamInfo");
    if (!of) failed("cuFuncGetParamInfo", "CUDA's driver has no such function: Python submissions need one of CUDA 12.4 or later");
    std::vector<size_t> found;
    for (size_t offset, bytes; of(kernels_of_ours[kernel], found.size(), &offset, &bytes) == CUDA_SUCCESS;)
        found.push_back(bytes);
    return found;
}

void launch(int kernel, const Launch &with) {
    CUfunction function = kernels_of_ours[kernel];
    std::vector<void *> arguments;
    for (const uint64_t &value : with.values) arguments.push_back((void *)&value);
    CUlaunchAttribute attributes[2] = {};
    CUlaunchConfig config = {};
    if (with.cooperative) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[config.numAttrs++].value.cooperative = 1;
    }
    if (with.cluster > 1) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[config.numAttrs].value.clusterDim.x = with.cluster;
        attributes[config.numAttrs].value.clusterDim.y = attributes[config.numAttrs].value.clusterDim.z = 1;
        config.numAttrs++;
    }
    if (with.cluster > PORTABLE_CLUSTER)
        call("cuFuncSetAttribute", function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    config.gridDimX = with.grid[0] * with.cluster;
    config.gridDimY = with.grid[1];
    config.gridDimZ = with.grid[2];
    config.blockDimX = with.threads;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = with.shared_bytes;
    config.hStream = stream;
    config.attrs = attributes;
    call("cuLaunchKernelEx", (const CUlaunchConfig *)&config, function, arguments.data(), (void **)nullptr);
}

void synchronize() { call("cuCtxSynchronize"); }

int new_event() {
    CUevent made = nullptr;
    call("cuEventCreate", &made, 0u);
    call("cuEventRecord", made, stream);
    events.push_back(made);
    return events.size() - 1;
}

float elapsed_ms(int begin, int end) {
    float duration = 0;
    call("cuEventSynchronize", events[end]);
    call("cuEventElapsedTime", &duration, events[begin], events[end]);
    return duration;
}

void print_properties(int descriptor) {
    static const struct {
        const char *name;
        CUdevice_attribute attribute;
    } all[] = {
        {"max_shared_mem", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
        {"max_num_regs", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
        {"multiprocessor_count", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {"warpSize", CU_DEVICE_ATTRIBUTE_WARP_SIZE},
        {"sm_clock_rate", CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
        {"mem_clock_rate", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
        {"mem_bus_width", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    };
    for (const auto &each : all) {
        int value = 0;
        call("cuDeviceGetAttribute", &value, each.attribute, (CUdevice)0);
        dprintf(descriptor, "%s %d ", each.name, value);
    }
}
