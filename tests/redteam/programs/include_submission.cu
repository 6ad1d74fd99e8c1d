// Includes the work of another student, who lives next door.
// expect: compile_error
#include "alice.cu"
