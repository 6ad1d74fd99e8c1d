/* Stands in for cublas.h where the library is not installed (see grader/programs/stubs/__init__.py): the common
 * declarations, without definitions. A program that calls one of these functions does not link. */
#pragma once
#include <cuComplex.h>

#ifdef __cplusplus
extern "C" {
#endif
typedef int cublasStatus;
#define CUBLAS_STATUS_SUCCESS 0
cublasStatus cublasInit(void);
cublasStatus cublasShutdown(void);
cublasStatus cublasGetError(void);
cublasStatus cublasAlloc(int n, int element_size, void **pointer);
cublasStatus cublasFree(void *pointer);
cublasStatus cublasSetVector(int n, int element_size, const void *x, int incx, void *device_y, int incy);
cublasStatus cublasGetVector(int n, int element_size, const void *device_x, int incx, void *y, int incy);
cublasStatus cublasSetMatrix(int rows, int columns, int element_size, const void *a, int lda, void *b, int ldb);
cublasStatus cublasGetMatrix(int rows, int columns, int element_size, const void *a, int lda, void *b, int ldb);
void cublasSgemm(char transa, char transb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
void cublasDgemm(char transa, char transb, int m, int n, int k, double alpha, const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);
void cublasSgemv(char trans, int m, int n, float alpha, const float *a, int lda, const float *x, int incx, float beta, float *y, int incy);
void cublasSaxpy(int n, float alpha, const float *x, int incx, float *y, int incy);
void cublasSscal(int n, float alpha, float *x, int incx);
float cublasSdot(int n, const float *x, int incx, const float *y, int incy);
#ifdef __cplusplus
}
#endif
