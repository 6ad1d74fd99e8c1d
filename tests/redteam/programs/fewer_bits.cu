// Computes with seven bits of each input, as bfloat16 would, in hope that nobody looks so closely.
// expect: wrong_answer
#include "hostile_attention.h"
__global__ void cut(float* values, size_t count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        values[i] = __uint_as_float(__float_as_uint(values[i]) & 0xffff0000u);
}

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    cut<<<64, 128>>>(data.input, 3 * data.shape.count());
    data.compute(data.shape.batches);
    data.write(argv[2]);
}
