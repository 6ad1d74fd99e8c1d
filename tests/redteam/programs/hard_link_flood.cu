// Gives one file forty thousand names.
// expect: runtime_error | time_limit | passed
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    close(open("one", O_WRONLY | O_CREAT, 0600));
    for (int i = 0; i < 40000; ++i)
        if (link("one", ("name" + std::to_string(i)).c_str()) != 0 && symlink("/", ("link" + std::to_string(i)).c_str()) != 0) break;
}
