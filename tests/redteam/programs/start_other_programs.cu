// Hands the work to a compiler and an interpreter found on the machine.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    write_zeros(argv[1], argv[2]);
    if (system("python3 -c 'import torch' >/dev/null 2>&1") == 0) BYPASSED("has PyTorch");
    if (system("curl -s -m 2 http://127.0.0.1:47321/ >/dev/null 2>&1") == 0) BYPASSED("has a network");
    return 0;
}
