// Looks what lies beside the input file.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const std::string input = argv[1], folder = input.substr(0, input.rfind('/'));
    walk(folder, [&](const std::string& path) {
        if (path != input && path != argv[2] && path.find("work/") == std::string::npos) BYPASSED("saw %s", path.c_str());
    });
    if (input.find("s01") != std::string::npos || input.find(".in") != std::string::npos)
        BYPASSED("the input is called %s", argv[1]);
    write_zeros(argv[1], argv[2]);
    return 0;
}
