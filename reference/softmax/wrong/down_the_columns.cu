// The softmax of every column.
// expect: wrong_answer on most: which are different sums
#define ROW_STEP 1
#define COLUMN_STEP columns
#define LENGTH rows
#define BLOCKS columns
#include "softmax.cuh"
