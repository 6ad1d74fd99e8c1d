"""The trace of a run: what a program did on the GPU, event by event, with totals and the reader of the trace file.

The CUPTI tracer (cupti_tracer.cpp) and the emulator write the same format, one JSON object per line; `events`
describes the objects.
"""

from grader.programs.trace.events import (
    AccessEvent,
    ApiError,
    BranchEvent,
    ExecutedEvent,
    KernelEvent,
    KernelSummary,
    LaunchesEvent,
    MemcpyEvent,
    MemsetEvent,
    ReuseEvent,
    Trace,
    TracerError,
)
from grader.programs.trace.reader import MAX_EVENTS, MAX_FILE_BYTES, read_received, read_trace

PATH_VARIABLE = "GRADER_TRACE"
"""The environment variable that tells the traced program where to write: a path, or `fd:N` for a descriptor that is
already open. The grader passes a descriptor, since the program cannot change what it has written there."""
