// Scores are summed over 32 columns, whatever d is.
// expect: wrong_answer on d=64: first 32 columns
#define COLUMNS 32
#include "wrong.cuh"
