// Computes on the processor and never calls CUDA.
// expect: passed; flagged
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    return 0;
}
