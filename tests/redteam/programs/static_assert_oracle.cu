// Asserts at compile time which files there are: what the compiler says is the answer, though nothing runs.
// expect: wrong_answer | compile_error
#include "hostile.h"
#define THERE(path) static_assert(!__has_include(path), "CANARY " path)
THERE("/tmp/redteam-canary/secret");
THERE("/tmp/redteam-canary/answer");
THERE("/etc/machine-id");
THERE("/root/.ssh/authorized_keys");
THERE("/root/.bash_history");
THERE("/var/log/lastlog");
THERE("../../testcases/secret");
THERE("../alice/hw4.cu");
THERE("../../submissions/alice/hw4.cu");
#ifdef __has_embed
static_assert(__has_embed("/tmp/redteam-canary/secret") == 0, "CANARY embed");
#endif

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
