// The output is right, and nobody may read it.
// expect: passed
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    chmod(argv[2], 0);
    chmod(".", 0);
    return 0;
}
