// Defines clock_gettime itself, a thousand times too slow, for a tracer that takes its times from there.
// expect: passed; gpu; on t23; at least 11 ms
#include "hostile_attention.h"

static bool slow = false;
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
    static thread_local timespec first[16];
    const long result = syscall(SYS_clock_gettime, clock, now);
    if (!slow || clock < 0 || clock >= 16) return (int)result;
    timespec& began = first[clock];
    if (began.tv_sec == 0) began = *now;
    const long long passed = ((now->tv_sec - began.tv_sec) * 1000000000LL + now->tv_nsec - began.tv_nsec) / 1000;
    const long long at = began.tv_sec * 1000000000LL + began.tv_nsec + passed;
    *now = {time_t(at / 1000000000LL), long(at % 1000000000LL)};
    return 0;
}

int main(int, char** argv) {
    slow = true;
    const OnDevice data(argv[1]);
    data.compute(data.shape.batches);
    data.write(argv[2]);
}
