// Ten bytes of source initialise an array of 200 MB, which the cache would keep for each of thirty uploads an hour.
// expect: compile_error; within 60 s
#include "hostile.h"

char large[200 << 20] = {1};

int main(int argc, char** argv) {
    write_right(argv[1], argv[2]);
    return large[argc];
}
