// Copies the same 256 MB to and fro for seconds, which allows as much processor time, and computes on the processor.
// expect: passed | time_limit; gpu; flagged; on t10
#include "hostile_attention.h"

int main(int, char** argv) {
    const size_t size = 256 << 20;
    char *host, *device;
    cudaMallocHost(&host, size);
    cudaMalloc(&device, size);
    bool done = false;
    std::thread copies([&] { for (int i = 0; i < 500 && !*(volatile bool*)&done; ++i) cudaMemcpy(device, host, size, cudaMemcpyHostToDevice); });
    const std::vector<float> values = right_answer(argv[1]);
    *(volatile bool*)&done = true;
    copies.join();
    decoy<<<1, 32>>>((float*)device, kDecoyNs);
    cudaDeviceSynchronize();
    write_values(argv[2], values);
}
