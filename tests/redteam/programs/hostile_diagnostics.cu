// Makes the compiler say escapes for the terminal, HTML, formulas, and a megabyte in one word.
// expect: compile_error
#include "hostile.h"
#define A "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define B A A A A A A A A A A A A A A A A A A A A A A A A A A A A A A A A
#define C B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B
static_assert(false, "\x1b[2J\x1b]0;title\x07<script>alert(1)</script> =HYPERLINK(\"http://x\") | ``` \u202e \u2066");
static_assert(false, C);
#error <img src=x onerror=alert(1)> =cmd|'/c calc'!A1

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
