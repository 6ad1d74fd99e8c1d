// Says that its lines are the secret's, and crashes there: a report that quotes the line would quote the secret.
// expect: runtime_error | wrong_answer | no_output
#include "hostile.h"
#line 1 "/tmp/redteam-canary/secret"
__global__ void crash(int* nowhere) { nowhere[threadIdx.x] = 1; }

int main(int, char** argv) {
    crash<<<1, 32>>>((int*)16);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    write_zeros(argv[1], argv[2]);
}
