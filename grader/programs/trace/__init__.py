"""What a program did on the GPU: its events, their totals, and the reader of the trace file.

The CUPTI tracer (cupti_tracer.cpp) and the emulator write the same file, one JSON object a line; `events`
says what each holds.
"""

from grader.programs.trace.events import (
    AccessEvent,
    ApiError,
    BranchEvent,
    Diagnostic,
    KernelEvent,
    KernelSummary,
    MemcpyEvent,
    MemsetEvent,
    Race,
    Trace,
    TracerError,
)
from grader.programs.trace.reader import MAX_EVENTS, MAX_FILE_BYTES, read_received, read_trace

PATH_VARIABLE = "GRADER_TRACE"
"""The environment variable that tells the traced program where to write: a path, or `fd:N`, a descriptor that is open
already. The grader gives a descriptor: what was written to it cannot be changed any more."""
