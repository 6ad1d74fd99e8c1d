// Ends with the exit code of a process that the machine killed for its memory, so that the machine is blamed.
// expect: runtime_error
#include "hostile.h"

int main() { return 128 + SIGKILL; }
