// Writes to its own program, which is kept for the next run.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (const char* path : {"/proc/self/exe", (const char*)argv[0]}) {
        if (open(path, O_WRONLY) >= 0) BYPASSED("opened %s for writing", path);
        if (chmod(path, 0777) == 0) BYPASSED("changed the mode of %s", path);
    }
    if (unlink(argv[0]) == 0) BYPASSED("removed %s", argv[0]);
    write_zeros(argv[1], argv[2]);
    return 0;
}
