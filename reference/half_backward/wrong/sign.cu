// D - dP for dP - D: dQ and dK have the wrong sign.
// expect: wrong_answer on most: times what it should be
#define DQ_SCALE(h) (-(h).scale)
#define DK_SCALE(h) (-(h).scale)
#include "gradient.cuh"
