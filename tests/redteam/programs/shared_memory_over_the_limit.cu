// Asks for more shared memory than a block may have, and takes no notice of the refusal.
// expect: wrong_answer | runtime_error
#include "hostile.h"
__global__ void fill(float* output, size_t count) {
    extern __shared__ float values[];
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) output[i] = values[i % 75000] = 1;
}

int main(int, char** argv) {
    const Shape shape = shape_of(argv[1]);
    std::vector<float> result(shape.count());
    float* output;
    cudaMalloc(&output, shape.count() * 4);
    cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000);
    fill<<<1, 128, 300000>>>(output, shape.count());
    if (cudaMemcpy(result.data(), output, shape.count() * 4, cudaMemcpyDeviceToHost) == cudaSuccess && result[0] == 1)
        BYPASSED("a block has 300,000 bytes of shared memory");
    write_values(argv[2], result);
}
