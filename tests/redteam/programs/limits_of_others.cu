// Changes the limits of other processes, the grader among them: one second of processor time would end it.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (const int pid : other_processes()) {
        rlimit limit;
        if (prlimit((pid_t)pid, RLIMIT_CORE, nullptr, &limit) != 0) continue;
        if (prlimit((pid_t)pid, RLIMIT_CORE, &limit, nullptr) == 0) {    // to what it is: one step from ending it
            BYPASSED("set a limit of process %d, %s", pid, contents("/proc/" + std::to_string(pid) + "/comm", 40).c_str());
            break;
        }
    }
    write_zeros(argv[1], argv[2]);
}
