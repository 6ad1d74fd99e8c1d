/* The functions that the emulator lacks (absent.inc). Each prints once what is missing and returns an error code. This
 * file does not include their declarations, so that one macro can define them all, whatever their parameters. */

int api_absent(const char *function, const char *what, const char *advice, const void *call);

#define ABSENT(...) ABSENT_(__VA_ARGS__)
#define ABSENT_(name, what, advice) \
    int name(void) { return api_absent(#name, what, advice, __builtin_return_address(0)); }
#include "absent.inc"
