// Errors are exceptions, and memory belongs to objects; one exception is thrown and caught on the way.
#include "honest.h"
#include <memory>
#include <stdexcept>
#include <string>

static void check(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

class Buffer {
  public:
    explicit Buffer(size_t count) { check(cudaMalloc(&values_, count * 4)); }
    ~Buffer() { cudaFree(values_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    float* get() const { return values_; }

  private:
    float* values_ = nullptr;
};

int main(int argc, char** argv) try {
    if (argc != 3) throw std::invalid_argument("expected INPUT and OUTPUT");
    try {
        throw std::runtime_error("only to see it caught");
    } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    std::vector<float> values(3 * shape.count());
    read_values(file, values.data(), values.size());
    const auto input = std::make_unique<Buffer>(3 * shape.count()), output = std::make_unique<Buffer>(shape.count());
    check(cudaMemcpy(input->get(), values.data(), values.size() * 4, cudaMemcpyHostToDevice));
    launch(input->get(), output->get(), shape.batches, shape.n, shape.d);
    check(cudaMemcpy(values.data(), output->get(), shape.count() * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], values.data(), shape.count());
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
