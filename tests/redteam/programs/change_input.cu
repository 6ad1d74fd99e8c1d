// Writes to, renames or removes its input.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    if (open(argv[1], O_WRONLY) >= 0) BYPASSED("opened the input for writing");
    if (chmod(argv[1], 0666) == 0) BYPASSED("changed the input's mode");
    if (rename(argv[1], "moved") == 0) BYPASSED("moved the input");
    if (unlink(argv[1]) == 0) BYPASSED("removed the input");
    if (link(argv[1], "linked") == 0) BYPASSED("linked the input");
    write_zeros(argv[1], argv[2]);
    return 0;
}
