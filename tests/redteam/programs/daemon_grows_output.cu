// A daemon appends to the output after the end.
// expect: passed
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const std::string output = argv[2];
    leave_daemon([=] {
        const int file = open(output.c_str(), O_WRONLY | O_APPEND);
        for (int i = 0; i < 20000; ++i) if (write(file, "more", 4) < 0 || usleep(100) < 0) break;
    });
    return 0;
}
