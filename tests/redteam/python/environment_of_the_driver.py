# Sets variables that make drivers, tracers and Triton load libraries of its own.
# expect: wrong_answer; refused
import os

write_zeros()
for name in (
    "CUDA_INJECTION64_PATH",
    "LD_PRELOAD",
    "TRITON_LIBCUDA_PATH",
    "TRITON_PTXAS_PATH",
    "TRITON_PLUGIN_PATHS",
    "GRADER_TRITON_RUNTIME",
    "GRADER_TRITON_CHECKS",
    "GRADER_TRACE",
    "CUDA_VISIBLE_DEVICES",
):
    os.environ[name] = "/tmp/redteam-canary/answer"
try:
    launch_decoy()
except Exception as error:
    print(type(error))
