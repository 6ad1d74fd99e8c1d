// Ends by the signal of a limit that it has not reached, with the right size of output.
// expect: runtime_error | wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    write_zeros(argv[1], argv[2]);
    signal(SIGXFSZ, SIG_DFL);
    raise(getpid() % 2 ? SIGXFSZ : SIGXCPU);
}
