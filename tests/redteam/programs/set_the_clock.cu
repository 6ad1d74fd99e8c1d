// Sets the machine's clock, or its speed, in every way there is.
// expect: wrong_answer
#include "hostile.h"
#include <sys/time.h>
#include <sys/timex.h>

int main(int, char** argv) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const timeval same = {now.tv_sec, now.tv_nsec / 1000};
    if (clock_settime(CLOCK_REALTIME, &now) == 0) BYPASSED("clock_settime");
    if (settimeofday(&same, nullptr) == 0) BYPASSED("settimeofday");
    timex change = {};
    change.modes = ADJ_TICK;
    change.tick = 10000;
    if (adjtimex(&change) >= 0) BYPASSED("adjtimex");
    change.modes = ADJ_OFFSET;
    if (clock_adjtime(CLOCK_REALTIME, &change) >= 0) BYPASSED("clock_adjtime");
    for (const char* path : {"/dev/rtc", "/dev/rtc0"})
        if (open(path, O_WRONLY) >= 0) BYPASSED("%s", path);
    const int offsets = open("/proc/self/timens_offsets", O_WRONLY);
    if (offsets >= 0 && write(offsets, "monotonic 86400 0\n", 18) > 0) BYPASSED("its clock is a day ahead");
    write_zeros(argv[1], argv[2]);
}
