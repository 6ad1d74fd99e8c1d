// The output has a terabyte and takes no disk.
// expect: wrong_answer | runtime_error
#include "hostile.h"

int main(int, char** argv) {
    const int file = open(argv[2], O_CREAT | O_WRONLY, 0666);
    if (ftruncate(file, off_t(1) << 40) != 0) write(file, "", 1);
    return 0;
}
