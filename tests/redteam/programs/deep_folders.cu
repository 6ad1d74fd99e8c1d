// Makes 3,000 folders in each other, which nothing that recurses can remove.
// expect: runtime_error
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    for (int i = 0; i < 3000; ++i) if (mkdir("deep", 0777) != 0 || chdir("deep") != 0) break;
    return 0;
}
