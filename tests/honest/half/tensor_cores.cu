// Products by wmma, in the type of the input.
#include "tensor_cores.cuh"
