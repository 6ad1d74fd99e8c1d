// The input is mapped into memory and the output too, instead of being read and written.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const int in = open(argv[1], O_RDONLY);
    struct stat facts;
    if (in < 0 || fstat(in, &facts) != 0) return 1;
    const char* const bytes = static_cast<const char*>(mmap(nullptr, facts.st_size, PROT_READ, MAP_PRIVATE, in, 0));
    const Shape shape = *reinterpret_cast<const Shape*>(bytes);
    const size_t count = shape.count();
    const int out = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (ftruncate(out, count * 4) != 0) return 1;
    float* const result = static_cast<float*>(mmap(nullptr, count * 4, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0));
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, bytes + 12, 3 * count * 4, cudaMemcpyHostToDevice));
    launch(input, output, shape.batches, shape.n, shape.d);
    must(cudaMemcpy(result, output, count * 4, cudaMemcpyDeviceToHost));
    return munmap(result, count * 4);
}
