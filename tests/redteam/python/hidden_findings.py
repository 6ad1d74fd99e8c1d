# Switches the emulator's checks off, and reads and writes past its arrays.
# expect: wrong_answer | runtime_error | no_output; refused
import ctypes

try:
    from grader.python import library

    ctypes.c_uint32.in_dll(library._runtime(), "shadow_checks").value = 0
except Exception as error:
    print(error)
y = launch_decoy()
decoy_kernel[(64,)](y, 1 << 16, BLOCK=1024)
to_numpy(y)
write_zeros()
