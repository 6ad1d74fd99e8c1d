/* The device: one emulated GPU with the facts of device.c. */

#include "emu.h"
#include <cuda.h>

static int valid(int device) { return device == 0; }

cudaError_t cudaGetDeviceCount(int *n) { *n = 1; return API(cudaSuccess); }
cudaError_t cudaGetDevice(int *d) { *d = 0; return API(cudaSuccess); }
cudaError_t cudaSetDevice(int d) { return API(valid(d) ? surface_fault() : cudaErrorInvalidDevice); }
cudaError_t cudaInitDevice(int d, unsigned device_flags, unsigned flags) { (void)device_flags, (void)flags; return API(valid(d) ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaSetValidDevices(int *list, int n) { (void)list, (void)n; return API(cudaSuccess); }
cudaError_t cudaChooseDevice(int *d, const struct cudaDeviceProp *p) { (void)p; *d = 0; return API(cudaSuccess); }
cudaError_t cudaSetDeviceFlags(unsigned flags) { (void)flags; return API(cudaSuccess); }
cudaError_t cudaGetDeviceFlags(unsigned *flags) { *flags = 0; return API(cudaSuccess); }
cudaError_t cudaDeviceSynchronize(void) { work_wait(NULL, 0); return API(surface_fault()); }
cudaError_t cudaDriverGetVersion(int *v) { *v = 13000; return API(cudaSuccess); }
cudaError_t cudaRuntimeGetVersion(int *v) { *v = 13000; return API(cudaSuccess); }
cudaError_t cudaDeviceReset(void) {
    work_wait(NULL, 0);
    int faulted = surface_fault();
    pending_fault = 0;
    sticky_error = faulted ? cudaErrorDevicesUnavailable : 0; /* seen on an H200: after a fault only a new process can use the GPU */
    memory_reset();
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int a, int b) { (void)a, (void)b; *can = 0; return API(cudaSuccess); }
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) { (void)peer, (void)flags; return API(cudaErrorInvalidDevice); }
cudaError_t cudaDeviceDisablePeerAccess(int peer) { (void)peer; return API(cudaErrorPeerAccessNotEnabled); }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { if (least) *least = 0; if (greatest) *greatest = -5; return API(cudaSuccess); }
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache c) { (void)c; return API(cudaSuccess); }
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *c) { *c = cudaFuncCachePreferNone; return API(cudaSuccess); }
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig c) { (void)c; return API(cudaSuccess); }
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *c) { *c = cudaSharedMemBankSizeFourByte; return API(cudaSuccess); }
static size_t limits[16] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0}; /* by cudaLimit */
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit l) { if ((unsigned)l > 15) return API(cudaErrorInvalidValue); *value = limits[l]; return API(cudaSuccess); }
cudaError_t cudaDeviceSetLimit(enum cudaLimit l, size_t value) { if ((unsigned)l > 15) return API(cudaErrorInvalidValue); limits[l] = value; return API(cudaSuccess); }
#define PCI_ADDRESS "0000:00:00.0"
cudaError_t cudaDeviceGetPCIBusId(char *text, int n, int d) {
    if (!valid(d)) return API(cudaErrorInvalidDevice);
    if (n < (int)sizeof PCI_ADDRESS) return API(cudaErrorInvalidValue);
    memcpy(text, PCI_ADDRESS, sizeof PCI_ADDRESS);
    return API(cudaSuccess);
}
cudaError_t cudaDeviceGetByPCIBusId(int *d, const char *text) { *d = 0; return API(strcmp(text, PCI_ADDRESS) ? cudaErrorInvalidDevice : cudaSuccess); }
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *elements, const struct cudaChannelFormatDesc *f, int d) { (void)f; *elements = 1u << 28; return API(valid(d) ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr a, int from, int to) { (void)a, (void)from, (void)to; *value = 0; return API(cudaErrorInvalidDevice); } /* there is only one device */
cudaError_t cudaDeviceGetGraphMemAttribute(int d, enum cudaGraphMemAttributeType a, void *value) { (void)a; *(u64 *)value = 0; return API(valid(d) ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaDeviceSetGraphMemAttribute(int d, enum cudaGraphMemAttributeType a, void *value) { (void)a, (void)value; return API(valid(d) ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaDeviceGraphMemTrim(int d) { return API(valid(d) ? cudaSuccess : cudaErrorInvalidDevice); }
/* Of the driver API, the emulator has only the functions that make tensor maps. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags, enum cudaDriverEntryPointQueryResult *status) {
    (void)version, (void)flags;
    *out = NULL;
    if (strcmp(name, "cuTensorMapEncodeTiled") == 0) *out = (void *)cuTensorMapEncodeTiled;
    if (strcmp(name, "cuTensorMapEncodeIm2col") == 0) *out = (void *)cuTensorMapEncodeIm2col;
    if (*out) {
        if (status) *status = cudaDriverEntryPointSuccess;
        return API(cudaSuccess);
    }
    if (status) *status = cudaDriverEntryPointSymbolNotFound;
    return API(status ? cudaSuccess : cudaErrorSymbolNotFound);
}
cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, enum cudaDriverEntryPointQueryResult *status) { return cudaGetDriverEntryPointByVersion(name, out, 13000, flags, status); }
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    if (!valid(device)) return API(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", gpu->name);
    p->totalGlobalMem = DEVICE_MEMORY_BYTES;
    p->sharedMemPerBlock = SHARED_DEFAULT, p->sharedMemPerMultiprocessor = gpu->shared, p->sharedMemPerBlockOptin = gpu->shared_per_block;
    p->reservedSharedMemPerBlock = SHARED_RESERVED;
    p->regsPerBlock = 65536, p->regsPerMultiprocessor = 65536;
    p->warpSize = 32, p->memPitch = 0x7fffffff;
    p->maxThreadsPerBlock = 1024, p->maxThreadsPerMultiProcessor = (int)gpu->threads, p->maxBlocksPerMultiProcessor = (int)gpu->blocks;
    p->maxThreadsDim[0] = 1024, p->maxThreadsDim[1] = 1024, p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff, p->maxGridSize[1] = 65535, p->maxGridSize[2] = 65535;
    p->totalConstMem = 65536, p->major = (int)gpu->architecture / 10, p->minor = (int)gpu->architecture % 10;
    p->textureAlignment = 512, p->texturePitchAlignment = 32, p->surfaceAlignment = 512;
    p->multiProcessorCount = (int)gpu->multiprocessors, p->l2CacheSize = (int)gpu->l2, p->memoryBusWidth = (int)gpu->bus_bits;
    p->clusterLaunch = HAS_CLUSTERS;
    p->concurrentKernels = 1, p->asyncEngineCount = 3, p->unifiedAddressing = 1, p->managedMemory = 1, p->concurrentManagedAccess = 1;
    p->canMapHostMemory = 1, p->cooperativeLaunch = 1, p->streamPrioritiesSupported = 1, p->globalL1CacheSupported = 1, p->localL1CacheSupported = 1;
    p->computePreemptionSupported = 1, p->hostNativeAtomicSupported = 0, p->memoryPoolsSupported = 1, p->hostRegisterSupported = 1;
    return API(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr a, int device) {
    if (!valid(device)) return API(cudaErrorInvalidDevice);
    switch (a) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; break;
    case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = SHARED_DEFAULT; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)gpu->shared_per_block; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)gpu->shared; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = SHARED_RESERVED; break;
    case cudaDevAttrTotalConstantMemory: *value = 65536; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxPitch: *value = 0x7fffffff; break;
    case cudaDevAttrMaxRegistersPerBlock: case cudaDevAttrMaxRegistersPerMultiprocessor: *value = 65536; break;
    case cudaDevAttrClockRate: *value = (int)gpu->clock_khz; break;
    case cudaDevAttrMemoryClockRate: *value = (int)gpu->memory_clock_khz; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = (int)gpu->bus_bits; break;
    case cudaDevAttrMultiProcessorCount: *value = (int)gpu->multiprocessors; break;
    case cudaDevAttrL2CacheSize: *value = (int)gpu->l2; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = (int)gpu->threads; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = (int)gpu->blocks; break;
    case cudaDevAttrComputeCapabilityMajor: *value = (int)gpu->architecture / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = (int)gpu->architecture % 10; break;
    case cudaDevAttrClusterLaunch: *value = HAS_CLUSTERS; break;
    case cudaDevAttrMaxTexture1DWidth: case cudaDevAttrMaxTexture2DWidth: *value = 131072; break;
    case cudaDevAttrMaxTexture2DHeight: *value = 65536; break;
    case cudaDevAttrMaxTexture3DWidth: case cudaDevAttrMaxTexture3DHeight: case cudaDevAttrMaxTexture3DDepth: *value = 16384; break;
    case cudaDevAttrTexturePitchAlignment: *value = 32; break;
    case cudaDevAttrTextureAlignment: case cudaDevAttrSurfaceAlignment: *value = 512; break;
    case cudaDevAttrAsyncEngineCount: *value = 3; break;
    case cudaDevAttrConcurrentKernels: case cudaDevAttrUnifiedAddressing: case cudaDevAttrManagedMemory: case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCanMapHostMemory: case cudaDevAttrCooperativeLaunch: case cudaDevAttrStreamPrioritiesSupported: case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrHostRegisterSupported: case cudaDevAttrGlobalL1CacheSupported: case cudaDevAttrLocalL1CacheSupported: *value = 1; break;
    default: *value = 0;
    }
    return API(cudaSuccess);
}
