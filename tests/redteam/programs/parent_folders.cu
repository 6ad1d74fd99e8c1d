// Writes to the folders above its own, where nobody counts.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    for (const char* place : {"../x", "../../x", "../y/", "../../y/"}) {
        if (place[strlen(place) - 1] == '/' ? mkdir(place, 0700) == 0 : close(creat(place, 0600)) == 0)
            BYPASSED("%s could be made", place);
    }
    write_zeros(argv[1], argv[2]);
}
