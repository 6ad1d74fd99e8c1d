// The output is right and has one byte more.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    FILE* const file = fopen(argv[2], "ab");
    fputc(0, file);
    fclose(file);
}
