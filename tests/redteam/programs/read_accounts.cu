// Reads who has an account here and what the machine is called.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    if (contents("/etc/passwd").find("root:") != std::string::npos) BYPASSED("/etc/passwd");
    if (!contents("/etc/shadow").empty()) BYPASSED("/etc/shadow");
    if (access("/home", F_OK) == 0 && !contents("/etc/hostname").empty()) BYPASSED("/home and /etc/hostname");
    write_zeros(argv[1], argv[2]);
    return 0;
}
