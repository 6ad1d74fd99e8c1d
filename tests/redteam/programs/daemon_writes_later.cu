// Ends at once; a daemon writes the output afterwards, when the clock has stopped.
// expect: no_output
#include "hostile.h"

int main(int, char** argv) {
    const std::string input = argv[1], output = argv[2];
    leave_daemon([=] { write_right(input.c_str(), output.c_str()); });
    return 0;
}
