// The output is a symbolic link to a file of the right size.
// expect: no_output
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], "answer");
    symlink("answer", argv[2]);
    return 0;
}
