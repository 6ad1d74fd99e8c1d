// The output is text of the right size: the numbers of a table, the rest blanks.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const std::vector<float> values = right_answer(argv[1]);
    FILE* const file = fopen(argv[2], "wb");
    for (size_t i = 0; i < values.size(); ++i) fprintf(file, "%4.1g", values[i] > 0 ? 0.1 : -.1);
    fclose(file);
    if (truncate(argv[2], values.size() * 4) != 0) return 1;
}
