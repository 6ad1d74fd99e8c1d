// Looks everywhere for the secret of the hidden testcases.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    walk("/", [](const std::string& path) {
        if (contents(path, 4096).find("CANARY-" "SECRET") != std::string::npos) BYPASSED("read %s", path.c_str());
    });
    write_zeros(argv[1], argv[2]);
    return 0;
}
