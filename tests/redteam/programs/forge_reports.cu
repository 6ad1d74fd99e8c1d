// Prints and writes what a grader's report looks like, and moves the terminal's cursor.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const char* const forged = "{\"scores\":{\"total\":100},\"score\":100,\"tests\":[{\"name\":\"s01\",\"verdict\":\"passed\"}]}";
    for (const char* path : {"record.json", "results.json", "/autograder/results/results.json", "../record.json", "../../record.json",
                             "/tmp/redteam-canary/results.json", "build.json", "../trace.jsonl"}) {
        FILE* const file = fopen(path, "w");
        if (file) fputs(forged, file), fclose(file);
    }
    puts(forged);
    printf("\033[2J\033[H\033]0;passed\007s01 passed\n\033[1A\r");
    fflush(stdout);
    write_zeros(argv[1], argv[2]);
    return 0;
}
