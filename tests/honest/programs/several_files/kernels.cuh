#pragma once
void compute_elsewhere(const char* input, const char* output);
