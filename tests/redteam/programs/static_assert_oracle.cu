// Asserts at compile time which files there are: what the compiler says is the answer, though nothing runs.
// expect: wrong_answer | compile_error
// Landlock hides what is in files, not that they exist (docs/integrity.md): there the compiler ends at the first of them.
#include "hostile.h"
#if __has_include("/tmp/redteam-canary/secret")
constexpr bool there = true;
#elif __has_include("/root/.ssh/authorized_keys") || __has_include("/root/.bash_history") || __has_include("/etc/machine-id")
constexpr bool there = true;
#elif __has_include("../../testcases/secret") || __has_include("../alice/hw4.cu") || __has_include("../../submissions/alice/hw4.cu")
constexpr bool there = true;
#else
constexpr bool there = false;
#endif
static_assert(!there, "CANARY: it is there");
#ifdef __has_embed
#if __has_embed("/tmp/redteam-canary/secret")
static_assert(false, "CANARY: it can be embedded");
#endif
#endif

int main(int, char** argv) { write_zeros(argv[1], argv[2]); }
