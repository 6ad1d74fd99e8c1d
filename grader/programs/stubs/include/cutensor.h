/* Stands in for cutensor.h where the library is not installed (see grader/programs/stubs/__init__.py): the common
 * declarations, with nothing behind them. A program that calls one of these functions does not link. */
#pragma once
#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
typedef enum {
    CUTENSOR_STATUS_SUCCESS = 0,
    CUTENSOR_STATUS_NOT_INITIALIZED = 1,
    CUTENSOR_STATUS_ALLOC_FAILED = 3,
    CUTENSOR_STATUS_INVALID_VALUE = 7,
    CUTENSOR_STATUS_EXECUTION_FAILED = 13,
    CUTENSOR_STATUS_INTERNAL_ERROR = 14,
    CUTENSOR_STATUS_NOT_SUPPORTED = 15,
} cutensorStatus_t;
typedef struct cutensorHandle *cutensorHandle_t;
typedef struct cutensorPlan *cutensorPlan_t;
typedef struct cutensorTensorDescriptor *cutensorTensorDescriptor_t;
typedef struct cutensorOperationDescriptor *cutensorOperationDescriptor_t;
cutensorStatus_t cutensorCreate(cutensorHandle_t *handle);
cutensorStatus_t cutensorDestroy(cutensorHandle_t handle);
cutensorStatus_t cutensorContract(cutensorHandle_t handle, cutensorPlan_t plan, const void *alpha, const void *a, const void *b, const void *beta, const void *c, void *d, void *workspace, uint64_t workspace_bytes, cudaStream_t stream);
const char * cutensorGetErrorString(cutensorStatus_t status);
#ifdef __cplusplus
}
#endif
