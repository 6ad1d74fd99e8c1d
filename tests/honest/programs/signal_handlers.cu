// Handles signals, as programs with a progress display do: a timer's, Ctrl-C's, a crash's.
#include "honest.h"
#include <csignal>
#include <sys/time.h>

static volatile std::sig_atomic_t ticks = 0;
static void tick(int) { ticks = ticks + 1; }
static void crashed(int) { std::_Exit(3); }

int main(int argc, char** argv) {
    struct sigaction action = {};
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    std::signal(SIGINT, crashed);
    std::signal(SIGTERM, crashed);
    std::signal(SIGSEGV, crashed);
    const itimerval every = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &every, nullptr);
    if (argc != 3) return 2;
    compute(argv[1], argv[2]);
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    std::printf("%d ticks\n", int(ticks));
}
