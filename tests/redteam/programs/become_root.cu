// Tries to become root, by setuid and by programs that have it.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    setgid(0); setuid(0); setresuid(0, 0, 0);
    const std::string status = contents("/proc/self/status");
    const size_t at = status.find("CapEff:");
    if (at != std::string::npos && status.substr(at + 8, 16) != "0000000000000000") BYPASSED("capabilities %s", status.substr(at, 24).c_str());
    if (system("su -c true </dev/null >/dev/null 2>&1") == 0) BYPASSED("su");
    if (system("sudo -n true >/dev/null 2>&1") == 0) BYPASSED("sudo");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) BYPASSED("privileges can be gained");
    write_zeros(argv[1], argv[2]);
    return 0;
}
