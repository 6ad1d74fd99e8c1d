#include "kernels.cuh"
#include "honest.h"

void compute_elsewhere(const char* input, const char* output) { compute(input, output); }
