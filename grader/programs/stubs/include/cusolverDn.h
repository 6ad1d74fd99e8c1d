/* Stands in for cusolverDn.h where the library is not installed (see grader/programs/stubs/__init__.py): the common
 * declarations, with nothing behind them. A program that calls one of these functions does not link. */
#pragma once
#include <cublas_v2.h>

#ifdef __cplusplus
extern "C" {
#endif
typedef enum {
    CUSOLVER_STATUS_SUCCESS = 0,
    CUSOLVER_STATUS_NOT_INITIALIZED = 1,
    CUSOLVER_STATUS_ALLOC_FAILED = 2,
    CUSOLVER_STATUS_INVALID_VALUE = 3,
    CUSOLVER_STATUS_EXECUTION_FAILED = 6,
    CUSOLVER_STATUS_INTERNAL_ERROR = 7,
} cusolverStatus_t;
typedef struct cusolverDnContext *cusolverDnHandle_t;
cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnSgetrf_bufferSize(cusolverDnHandle_t handle, int m, int n, float *a, int lda, int *size);
cusolverStatus_t cusolverDnSgetrf(cusolverDnHandle_t handle, int m, int n, float *a, int lda, float *workspace, int *pivots, int *info);
cusolverStatus_t cusolverDnSpotrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, float *a, int lda, int *size);
cusolverStatus_t cusolverDnSpotrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, float *a, int lda, float *workspace, int size, int *info);
#ifdef __cplusplus
}
#endif
