// D - dP for dP - D: dQ and dK have the wrong sign.
// expect: wrong_answer on most: Every wrong row is the right one times
#define DQ_SCALE(h) (-(h).scale)
#define DK_SCALE(h) (-(h).scale)
#include "gradient.cuh"
