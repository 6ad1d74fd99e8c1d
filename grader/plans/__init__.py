"""Python submissions: host code runs once for each shape, in the build, and what it asks for becomes a plan; every run
replays the plan without it.

    rows.py ── host.py: solve(x, y, rows, columns) ──► plans/*.json, blobs/  (recorder.py, plan.py)
                  Triton ──► PTX for the emulator, or machine code for a GPU  (driver.py, compiler.py, launcher.py)
    plans + kernels ── package.py ──► one file ── replayer/ INPUT OUTPUT ──► trace, OUTPUT

`contract.py` says what `solve` is called with. `handles.py` has the tensors that host code gets: shape, dtype, strides
and address, but no values. `modules/` has the modules that only submissions import: `torch` stands in for PyTorch.

In a submission's process:

    recorder.use(Recorder())            what all tensors and launches of this process go to
    handles.Tensor, handles.empty, handles.constant(numpy array)
    dtypes.float16 … dtypes.DTYPES      one object for each type; `torch.float16` is dtypes.float16
    recorder.NoValues(text)             what asks for values raises it; `text` says what to do instead
    host.record_shape(names, arguments, recorder) -> Plan     with `contract.arguments_of(operator, shape)`
    recorder.current().gives_values     true under `grader run` only

Only a submission's process imports Triton, which is an optional dependency. May import `emulator`, `gpu`,
`operators` and the packages below them.
"""
