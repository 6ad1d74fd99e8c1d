// Names a macro @options.h: gcc takes the word for a response file, in which there are options and a command.
// expect: wrong_answer | compile_error
#include "hostile.h"

int main(int, char** argv) {
#ifdef TAKEN_OVER
    BYPASSED("options of a response file were honoured");
#endif
    write_zeros(argv[1], argv[2]);
}
