// A CUPTI without a GPU, to test the tracer where there is none.
//
// Theory of operation
//
//   This library has the functions of libcupti that the tracer calls. It keeps the callbacks that the tracer registers
//   and, on the test program's word, calls them as CUPTI would: activity records are put in a buffer that the
//   tracer supplied and are handed over when it is full or flushed; API callbacks come in pairs, enter and exit.
//   Record layouts are those of the real headers.

#include "fake_cupti.h"

#include <cupti.h>

#include <cstdlib>
#include <cstring>

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using MemcpyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using MemcpyRecord = CUpti_ActivityMemcpy5;
#endif

static CUpti_CallbackFunc callback;
static CUpti_BuffersCallbackRequestFunc requested;
static CUpti_BuffersCallbackCompleteFunc completed;
static uint8_t* buffer;
static size_t buffer_size, used;

static CUcontext const context = reinterpret_cast<CUcontext>(0x10);

static void deliver() {
    if (!buffer) return;
    uint8_t* const full = buffer;
    const size_t valid = used;
    buffer = nullptr;
    used = 0;
    completed(context, 0, full, buffer_size, valid);
}

static size_t size_of(CUpti_ActivityKind kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(KernelRecord);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(MemcpyRecord);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    default: std::abort();
    }
}

template <typename Record>
static void put(const Record& record) {
    if (buffer && used + sizeof record > buffer_size) deliver();
    if (!buffer) {
        size_t most = 0;
        requested(&buffer, &buffer_size, &most);
    }
    std::memcpy(buffer + used, &record, sizeof record);
    used += sizeof record;
}

// ------------------------------------------------------------------------- what the test program calls

void fake_context_created() {
    CUpti_ResourceData data = {};
    data.context = context;
    callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &data);
}

void fake_context_destroyed() {
    CUpti_ResourceData data = {};
    data.context = context;
    callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, &data);
    buffer = nullptr;    // what was not flushed is lost, as with a real context
    used = 0;
}

void fake_kernel(const char* mangled_name, uint64_t start_ns, uint64_t end_ns, uint32_t stream) {
    KernelRecord record = {};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.name = mangled_name;
    record.gridX = 128, record.gridY = record.gridZ = 1;
    record.blockX = record.blockY = 32, record.blockZ = 1;
    record.registersPerThread = 56;
    record.staticSharedMemory = 16640;
    record.dynamicSharedMemory = 1024;
    record.localMemoryPerThread = 8;
    record.start = start_ns, record.end = end_ns;
    record.streamId = stream;
    put(record);
}

void fake_memcpy(uint8_t kind, uint64_t bytes) {
    MemcpyRecord record = {};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    record.copyKind = kind;
    record.bytes = bytes;
    record.start = 10, record.end = 20, record.streamId = 7;
    put(record);
}

void fake_memset(uint64_t bytes) {
    CUpti_ActivityMemset4 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    record.bytes = bytes;
    record.start = 30, record.end = 40, record.streamId = 7;
    put(record);
}

static void call(CUpti_CallbackDomain domain, const char* name, int* result, CUpti_ApiCallbackSite site) {
    CUpti_CallbackData data = {};
    data.callbackSite = site;
    data.functionName = name;
    data.functionReturnValue = result;
    callback(nullptr, domain, 1, &data);
}

void fake_driver_call(const char* name, int result) {
    call(CUPTI_CB_DOMAIN_DRIVER_API, name, &result, CUPTI_API_ENTER);
    call(CUPTI_CB_DOMAIN_DRIVER_API, name, &result, CUPTI_API_EXIT);
}

void fake_runtime_call(const char* name, int result, const char* inner_driver_call, int inner_result) {
    call(CUPTI_CB_DOMAIN_RUNTIME_API, name, &result, CUPTI_API_ENTER);
    if (inner_driver_call) fake_driver_call(inner_driver_call, inner_result);
    call(CUPTI_CB_DOMAIN_RUNTIME_API, name, &result, CUPTI_API_EXIT);
}

// --------------------------------------------------------------------------------- what the tracer calls

extern "C" {

CUptiResult cuptiGetTimestamp(uint64_t* timestamp) { return *timestamp = 1234567, CUPTI_SUCCESS; }

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc function, void*) {
    callback = function;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain) { return CUPTI_SUCCESS; }

CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
    requested = request;
    completed = complete;
    return CUPTI_SUCCESS;
}

// FAKE_CUPTI_REFUSES makes memsets something that this CUPTI cannot trace.
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    const bool refuse = kind == CUPTI_ACTIVITY_KIND_MEMSET && std::getenv("FAKE_CUPTI_REFUSES");
    return refuse ? CUPTI_ERROR_NOT_COMPATIBLE : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityFlushAll(uint32_t) { return deliver(), CUPTI_SUCCESS; }

CUptiResult cuptiActivityGetNextRecord(uint8_t* from, size_t valid, CUpti_Activity** record) {
    uint8_t* const next = *record ? reinterpret_cast<uint8_t*>(*record) + size_of((*record)->kind) : from;
    if (next >= from + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(next);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) { return *dropped = 0, CUPTI_SUCCESS; }

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
    *text = result == CUPTI_ERROR_NOT_COMPATIBLE ? "CUPTI_ERROR_NOT_COMPATIBLE" : "another error";
    return CUPTI_SUCCESS;
}
}
