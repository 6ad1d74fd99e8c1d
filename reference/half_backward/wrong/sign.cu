// D - dP for dP - D: dQ and dK have the wrong sign.
// expect: wrong_answer on most: has the wrong sign
#define DQ_SCALE(h) (-(h).scale)
#define DK_SCALE(h) (-(h).scale)
#include "gradient.cuh"
