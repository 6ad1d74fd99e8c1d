// Looks for the secret in environments, its own and others'.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (char** entry = environ; *entry; ++entry)
        if (strstr(*entry, "SECRET") || strstr(*entry, "CANARY")) BYPASSED("%s", *entry);
    for (int pid = 1; pid < 5000; ++pid) {
        const std::string text = contents("/proc/" + std::to_string(pid) + "/environ");
        if (text.find("CANARY-" "SECRET") != std::string::npos) BYPASSED("environment of %d", pid);
    }
    write_zeros(argv[1], argv[2]);
    return 0;
}
