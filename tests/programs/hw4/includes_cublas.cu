// Includes headers of libraries and samples and uses nothing of them. Right.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <device_launch_parameters.h>
#include "attention.cuh"
