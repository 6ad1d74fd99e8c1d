// Stops itself, and waits to be continued.
// expect: time_limit; on s01
#include "hostile.h"

int main() {
    for (;;) raise(SIGSTOP);
}
