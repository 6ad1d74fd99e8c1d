// The output is a folder.
// expect: no_output
#include "hostile.h"

int main(int, char** argv) {
    mkdir(argv[2], 0777);
    return 0;
}
