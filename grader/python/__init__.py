"""The code that runs in the processes of a Python submission: Triton kernels and their host code, on a GPU or the
emulator.

A build packs the submission into one file, program.pyz, with Triton's cache of compiled kernels. `host.py` starts it:

half.py ── Triton ──► cubin, for a GPU: loaded by CUDA's driver
                └───► PTX for sm_80 ── translate, gcc ──► kernel.so ─┐
runtime/*.c ── gcc ──► runtime.so, once for each machine ────────────┴► this process

`driver.py` replaces Triton's driver, `launcher.py` its launchers. On the emulator, `backend.py` is the compiler's last
stage, and `library.py` the emulator's runtime as a shared library. On a GPU, `gpu.py` calls CUDA's driver. `arrays.py`
has tensors for both, so that no program needs PyTorch; `modules/` has the modules that only submissions import.

A run has two processes. The one that is started has the device (`service.py`) and notes what the program does with it
(`provenance.py`); the program runs in its child (`program_process.py`), where `device.py`'s functions ask the parent
(`remote.py`). Programs that import PyTorch, and the build step, have everything in one process.

These environment variables control the run; `grader.programs.engine.python_program` sets them:

    GRADER_PYTHON_ENGINE=emulator, cuda, or compile:ARCH   `compile` compiles kernels for sm_ARCH and launches none
    GRADER_TRITON_RUNTIME=FILE    the emulator's runtime as a shared library
    GRADER_TRITON_CHECKS=race,init,count   the emulator's checks beyond memory and sync, and counters

May import `emulator`, the packages below it, and Triton, which is an optional dependency.
"""
