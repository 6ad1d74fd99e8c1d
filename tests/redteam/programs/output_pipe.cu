// The output is a named pipe: who opens it waits for ever.
// expect: no_output
#include "hostile.h"

int main(int, char** argv) {
    mkfifo(argv[2], 0666);
    return 0;
}
