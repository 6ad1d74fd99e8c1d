// The output is a second name of another file.
// expect: no_output
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], "answer");
    if (link("answer", argv[2]) != 0) return 1;
    return 0;
}
