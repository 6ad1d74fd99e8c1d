// Answers before main, and ends before main.
// expect: wrong_answer
#include "hostile.h"
__attribute__((constructor)) static void before(int, char** argv, char**) {
    write_zeros(argv[1], argv[2]);
    _exit(0);
}

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    return 0;
}
