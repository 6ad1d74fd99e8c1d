// Leaves folders without permissions.
// expect: passed | runtime_error
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    mkdir("locked", 0777); mkdir("locked/inner", 0777);
    close(open("locked/inner/file", O_CREAT | O_WRONLY, 0));
    chmod("locked/inner", 0); chmod("locked", 0);
    return 0;
}
