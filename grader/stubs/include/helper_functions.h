// What homework uses of the CUDA samples' helper_functions.h: the timers and the command line.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "helper_string.h"
#include "helper_timer.h"

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif

// True when the distance of data from the reference is below epsilon times the norm of the reference.
inline bool sdkCompareL2fe(const float *reference, const float *data, unsigned int count, float epsilon) {
    double error = 0, norm = 0;
    for (unsigned int i = 0; i < count; ++i) {
        const double difference = double(reference[i]) - data[i];
        error += difference * difference;
        norm += double(reference[i]) * reference[i];
    }
    return norm > 0 && std::sqrt(error) < epsilon * std::sqrt(norm);
}
