// Starts as many threads as it can, 3000 at most.
// expect: passed | runtime_error
#include "hostile.h"
#include <pthread.h>

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    int made = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < 3000; ++i) {
        pthread_t thread;
        made += pthread_create(&thread, &small, [](void*) -> void* { sleep(5); return nullptr; }, nullptr) == 0;
    }
    if (made > 1500) BYPASSED("%d threads", made);
    _exit(0);
    return 0;
}
