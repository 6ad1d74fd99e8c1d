// Reads with std::ifstream, value by value, and writes with std::ofstream.
#include "honest.h"
#include <fstream>
#include <iostream>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::ifstream in(argv[1], std::ios::binary);
    Shape shape;
    in.read((char*)&shape, 12);
    const size_t count = shape.count();
    std::vector<float> values(3 * count), result(count);
    for (float& value : values) in.read((char*)&value, sizeof value);
    if (!in) return 1;
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    launch(input, output, shape.batches, shape.n, shape.d);
    must(cudaMemcpy(result.data(), output, count * 4, cudaMemcpyDeviceToHost));
    std::ofstream out(argv[2], std::ios::binary);
    out.write((const char*)result.data(), std::streamsize(count * 4));
    std::cerr << "wrote " << count << " values" << std::endl;
}
