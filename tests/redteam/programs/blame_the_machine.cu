// Asks for a GPU that is not there and reports a broken one, so that its wrong answer looks like the machine's fault.
// expect: runtime_error | wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    cudaSetDevice(77);
    const char* const where = getenv("GRADER_TRACE");
    const int fd = where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : -1;
    dprintf(fd, "{\"kind\":\"api_error\",\"function\":\"cudaMalloc\",\"code\":214,\"name\":\"cudaErrorECCUncorrectable\"}\n");
    write_zeros(argv[1], argv[2]);
    return 0;
}
