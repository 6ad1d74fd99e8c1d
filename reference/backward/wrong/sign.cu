// D - dP for dP - D: dQ and dK have the wrong sign.
// expect: wrong_answer on most: has the wrong sign
#define DQ_SCALE (-scale)
#define DK_SCALE (-scale)
#include "gradient.cuh"
