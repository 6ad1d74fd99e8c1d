// Scores are summed over 32 columns, whatever d is.
// expect: wrong_answer on d=64: Columns 32–63 of Q and K
#define COLUMNS 32
#include "wrong.cuh"
