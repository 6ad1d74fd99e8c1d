// Ends the conversation that the trace is, with shutdown and an out-of-band byte, once the trace has begun.
// expect: passed; flagged
#include "hostile.h"
__global__ void kernel() {}

int main(int, char** argv) {
    signal(SIGPIPE, SIG_IGN);
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    const char* const where = getenv("GRADER_TRACE");
    if (where && !strncmp(where, "fd:", 3)) {
        send(atoi(where + 3), "!", 1, MSG_OOB);
        shutdown(atoi(where + 3), SHUT_RDWR);
    }
    write_right(argv[1], argv[2]);
}
