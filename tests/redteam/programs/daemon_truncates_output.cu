// A daemon cuts the output off after the end.
// expect: passed
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const std::string output = argv[2];
    leave_daemon([=] { for (int i = 0; i < 20000; ++i) { truncate(output.c_str(), i); usleep(100); } });
    return 0;
}
