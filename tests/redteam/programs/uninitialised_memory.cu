// Hands in what it finds in device memory that it did not write.
// expect: wrong_answer; gpu
#include "hostile.h"

int main(int, char** argv) {
    const size_t bytes = shape_of(argv[1]).count() * 4;
    std::vector<float> found(bytes / 4);
    float* device = nullptr;
    cudaMalloc(&device, bytes);
    cudaMemcpy(found.data(), device, bytes, cudaMemcpyDeviceToHost);
    write_values(argv[2], found);
    return 0;
}
