// The softmax of every column.
// expect: wrong_answer on most: a softmax of every column
#define ROW_STEP 1
#define COLUMN_STEP columns
#define LENGTH rows
#define BLOCKS columns
#include "softmax.cuh"
