// Launches the oracle's kernels as grader/programs/gpu_oracle.py does: IN OUT, the bytes of outputs and scratch, the
// kernels' arguments, and for each kernel its grid and shared memory.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define KERNEL(name)                                                                                              \
    extern "C" __global__ void name(const float* input, float* output, void* scratch, int group, int queries, int keys, \
                                    int causal, int window, int bfloat16, double scale);
KERNEL(attention)
KERNEL(attention_queries)
KERNEL(attention_keys)

int main(int, char** argv) {
    const auto number = [&](int i) { return std::atoi(argv[i]); };
    std::vector<char> bytes;
    FILE* const in = std::fopen(argv[1], "rb");
    for (int c; (c = std::fgetc(in)) != EOF;) bytes.push_back(char(c));
    float *input, *output;
    void* scratch;
    cudaMalloc(&input, bytes.size());
    cudaMalloc(&output, number(3));
    cudaMalloc(&scratch, number(4));
    cudaMemcpy(input, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    const auto kernels = {attention, attention_queries, attention_keys};
    int at = 12;
    for (const auto kernel : kernels) {
        kernel<<<number(at), 128, number(at + 1)>>>(input, output, scratch, number(5), number(6), number(7), number(8),
                                                    number(9), number(10), std::atof(argv[11]));
        at += 2;
    }
    bytes.resize(number(3));
    const cudaError_t error = cudaMemcpy(bytes.data(), output, bytes.size(), cudaMemcpyDeviceToHost);
    FILE* const out = std::fopen(argv[2], "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), out);
    return std::fclose(out) || error;
}
