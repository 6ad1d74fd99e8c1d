// Products by wmma in tf32.
#define TF32
#include "tensor_cores.cuh"
