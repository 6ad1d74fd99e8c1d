// Makes thousands of streams and events.
// expect: passed | time_limit | memory_limit; gpu
#include "hostile.h"

int main(int, char** argv) {
    for (int i = 0; i < 4000; ++i) { cudaStream_t stream; cudaEvent_t event; cudaStreamCreate(&stream); cudaEventCreate(&event); }
    write_right(argv[1], argv[2]);
    return 0;
}
