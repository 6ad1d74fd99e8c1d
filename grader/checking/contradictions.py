"""Finds what leaves no result that could be right: no launch at all, results that are never copied back.

What happened comes from the trace, the lines from the reader of C++. Everything else that is wrong with such a run is a
consequence, so these findings come first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from grader.checking.slips import found_at
from grader.cpp.reading import asked, cpp_files, read_source
from grader.cpp.source import Call, Source
from grader.findings import Finding
from grader.programs.trace import Trace
from grader.sandbox.room import confined

_SHARED_WITH_HOST = ("Managed", "HostAlloc", "MallocHost", "HostRegister", "MemMap", "GraphAdd")
"""Parts of the names of calls after which results may reach the host without a copy that the trace shows."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_CERTAIN, _LIKELY = 1.0, 0.9
One = Annotated[tuple[Finding, ...], Field(max_length=1)]


def contradictions(
    files: Sequence[tuple[str, bytes]], trace: Trace | None, right_bytes: int = 0, output_bytes: int = 0
) -> tuple[Finding, ...]:
    """The contradictions of a run that ended by itself with a wrong output, of which the first `right_bytes` are
    right."""
    if trace is None or not trace.starts or trace.starts != trace.ends or trace.truncated or trace.api_errors:
        return ()
    copied = sum(copy.bytes for copy in trace.memcpys if copy.direction == "DtoH")
    in_part = 0 < copied <= right_bytes < output_bytes
    return asked((), _of, cpp_files(files), bool(trace.kernels), copied, output_bytes if in_part else 0)


@confined(cpu_s=20, memory_bytes=2 << 30)
def _of(files: Sequence[tuple[str, bytes]], launched: bool, copied: int, needed: int) -> One:
    """`copied`: bytes copied to the host; `needed`: bytes of the result if only what was copied is right, or 0."""
    source = read_source(files)
    if not source.functions:
        return ()
    if not launched:
        return (_nothing_launched(source),)
    if empty := _empty_kernel(source):
        return (empty,)
    managed = any("__managed__" in variable.type for variable in source.variables)
    if managed or any(part in call.name for call in source.calls for part in _SHARED_WITH_HOST):
        return ()
    if not copied:
        return (_nothing_copied(source),)
    back = _copies(source, "cudaMemcpyDeviceToHost")
    if needed and back:
        return (found_at(back[-1], "copied_in_part", _CERTAIN, copied=copied, needed=needed),)
    found = _inputs_copied(source, back)
    return (found,) if found else ()


def _nothing_launched(source: Source) -> Finding:
    if source.launches:
        return found_at(source.launches[0], "launch_not_reached", _CERTAIN)
    kernel = next((f for f in source.functions if f.space == "global"), None)
    if kernel is not None:
        return found_at(kernel, "kernel_not_launched", _CERTAIN, launched=kernel.name)
    return found_at(None, "no_launch", _CERTAIN)


def _empty_kernel(source: Source) -> Finding | None:
    """The kernel, if the program launches only one and that does nothing."""
    launched = {launch.name for launch in source.launches}
    kernels = [f for f in source.functions if f.space == "global" and f.name in launched]
    if not len(launched) == len(kernels) == 1:
        return None
    items = (*source.assignments, *source.calls, *source.variables)
    if any(kernels[0].holds(item.file, item.line) for item in items):
        return None
    return found_at(kernels[0], "kernel_empty", _CERTAIN, launched=kernels[0].name)


def _nothing_copied(source: Source) -> Finding:
    launching = {f.name for f in source.functions for each in source.launches if f.holds(each.file, each.line)}
    calls = [call for call in source.calls if call.name in launching]  # that launch, elsewhere
    last = max((*source.launches, *calls), key=lambda each: (each.file, each.line), default=None)
    for copy in _copies(source, "cudaMemcpyHostToDevice"):
        if last and copy.file == last.file and copy.line > last.line:
            return found_at(copy, "copied_the_wrong_way", _CERTAIN)
    return found_at(last, "not_copied_back", _LIKELY)


def _inputs_copied(source: Source, back: Sequence[Call]) -> Finding | None:
    """Copies to the host, all of arrays that kernels only read."""
    written, read = _used(source, writes=True), _used(source, writes=False)
    taken = [_WORD.match(copy.arguments[1]) for copy in back]
    names = {found[0] for found in taken if found}
    if not back or not all(taken) or not written or not names <= read - written:
        return None
    return found_at(back[0], "input_copied_back", _LIKELY, copied=min(names), written=min(written))


def _used(source: Source, *, writes: bool) -> set[str]:
    """The arrays that launches give to kernels as pointers to constants or, with `writes`, to other values."""
    kernels = {function.name: function.parameters for function in source.functions if function.space == "global"}
    names = set()
    for launch in source.launches:
        for (kind, _), argument in zip(kernels.get(launch.name, ()), launch.arguments, strict=False):
            if "*" in kind and (found := _WORD.match(argument)) and ("const" not in kind) == writes:
                names.add(found[0])
    return names


def _copies(source: Source, direction: str) -> list[Call]:
    copies = (call for call in source.calls if call.name.startswith("cudaMemcpy") and len(call.arguments) > 1)
    return [copy for copy in copies if direction in copy.arguments]
