// Every call is wrapped in a macro that says where it is, and every kernel is followed by a synchronisation.
#include "honest.h"

#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t error = (call);                                                              \
        std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error));  \
        if (error != cudaSuccess) std::abort();                                                        \
    } while (0)

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    read_values(file, values.data(), 3 * count);
    float *input, *output;
    CUDA_CHECK(cudaSetDevice(0));
    CUDA_CHECK(cudaMalloc(&input, 3 * count * 4));
    CUDA_CHECK(cudaMalloc(&output, count * 4));
    CUDA_CHECK(cudaMemset(output, 0xff, count * 4));
    CUDA_CHECK(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    launch(input, output, shape.batches, shape.n, shape.d);
    CUDA_CHECK(cudaPeekAtLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(input));
    CUDA_CHECK(cudaFree(output));
    write_values(argv[2], result.data(), count);
}
