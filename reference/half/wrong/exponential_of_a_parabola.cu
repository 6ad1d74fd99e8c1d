// Weights are 2^x by a polynomial of degree 2, which is off by up to 0.4 %.
// expect: wrong_answer on most: lost precision
#include <cmath>
__device__ inline float parabola(float x) {
    const float y = x * 1.44269504f, whole = floorf(y), rest = y - whole;
    return y < -126.0f ? 0.0f : ldexpf(1.00443f + rest * (0.65630f + rest * 0.33719f), int(whole));
}
#define EXP(x) parabola(x)
#define RESCALE_L(x) expf(m - top)
#define RESCALE_O(x) expf(m - top)
#include "attention.cuh"
