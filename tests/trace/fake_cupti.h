// What the fake CUPTI does when the test program says so.
#pragma once
#include <cstdint>

void fake_context_created();
void fake_context_destroyed();
void fake_kernel(const char* mangled_name, uint64_t start_ns, uint64_t end_ns, uint32_t stream = 7);
void fake_memcpy(uint8_t kind, uint64_t bytes);
void fake_memset(uint64_t bytes);
void fake_runtime_call(const char* name, int result, const char* inner_driver_call = nullptr, int inner_result = 0);
void fake_driver_call(const char* name, int result);
