"""`contract: function`: a CUDA file defines `solve` on device pointers, and the grader adds the program around it.

Every source of the submission is compiled after a declaration of `solve`, so that another signature is the compiler's
error. `function_main.cpp` is compiled with it, which reads INPUT, copies, calls, checks and writes OUTPUT. From then on
the submission is a program like any other. Python code says which sizes follow from a header, so main gets a table of
the headers of all testcases; one that differs only in the number of units, as a profile's does, counts as the same.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from grader.base.errors import UsageError
from grader.course.assignment import Assignment
from grader.course.testcase import Case, Suite
from grader.operators import Operator, Shape, Tensor
from grader.programs.submission import Submission

MAIN, DECLARATION = "grader_main.cpp", "grader_solve.h"
_SHAPES = "grader_shapes.h"
ARGUMENT = "argument "
"""What the file's name of an allocation's place begins with: the rest is the name of an argument of solve."""
_DEFINES_MAIN = re.compile(rb"\bmain\s*\(")
_HEADERS = {"f16": "cuda_fp16.h", "bf16": "cuda_bf16.h", "e4m3": "cuda_fp8.h", "e5m2": "cuda_fp8.h"}
_NUMBERS = {"f": "float", "q": "long long", "i": "int"}


def is_function(submission: Submission, assignment: Assignment) -> bool:
    """Whether the grader has to add a main to this submission."""
    if submission.is_python or assignment.contract == "program":
        return False
    sources = (content for name, content in submission.files if name in submission.sources)
    return assignment.contract == "function" or not any(map(_DEFINES_MAIN.search, sources))


def signature(suite: Suite) -> str:
    """What a submission defines."""
    operator, shape = suite.operator, next(iter(suite.cases.values())).shape
    parameters = [f"const {tensor.type.c}* {tensor.name}" for tensor in operator.inputs(shape)]
    parameters += [f"{tensor.type.c}* {tensor.name}" for tensor in operator.outputs(shape)]
    parameters += [f"{_NUMBERS[each.format]} {each.name}" for each in operator.dimensions]
    return f'extern "C" void solve({", ".join(parameters)})'


def added_files(suite: Suite, more: Iterable[Case] = ()) -> dict[str, str]:
    """The files to compile with a submission, for the shapes of the suite and of `more` cases. Raises UsageError if the
    operator's tensors cannot be handed over."""
    operator = suite.operator
    shapes = tuple(dict.fromkeys(case.shape for case in (*suite.cases.values(), *more)))
    groups = [_tensors(operator, shape) for shape in shapes]
    kinds = {tuple((tensor.name, tensor.type.name) for tensor in group) for group in groups}
    if len(kinds) > 1 or any(tensor.strides for group in groups for tensor in group):
        raise UsageError(
            "contract: function needs tensors of the same types for all shapes, each with a part of the file to "
            f"itself; those of {operator.name} are not like that: write `contract: program`."
        )
    headers = sorted({_HEADERS[tensor.type.name] for tensor in groups[0] if tensor.type.name in _HEADERS})
    lines = ["#pragma once", "#ifdef __cplusplus", *(f"#include <{name}>" for name in headers)]
    return {
        DECLARATION: "\n".join((*lines, f"{signature(suite)};", "#endif", "")),
        _SHAPES: _table(operator, shapes),
        MAIN: Path(__file__).with_name("function_main.cpp").read_text(encoding="utf-8"),
    }


def taken_name(submission: Submission, added: Mapping[str, str]) -> str:
    """A file or folder of the submission, in any folder, that has the name of another file that is added; '' if there
    is none."""
    for name, content in submission.files:
        for part in PurePosixPath(name).parts:
            if part.lower() in added and (part != PurePosixPath(name).name or content != added[part.lower()].encode()):
                return name
    return ""


def _tensors(operator: Operator, shape: Shape) -> tuple[Tensor, ...]:
    return (*operator.inputs(shape), *operator.outputs(shape))


def _table(operator: Operator, shapes: tuple[Shape, ...]) -> str:
    """The text of grader_shapes.h."""
    inputs, tensors = len(operator.inputs(shapes[0])), _tensors(operator, shapes[0])
    consts = ["const "] * inputs + [""] * (len(tensors) - inputs)
    arguments = [
        f"static_cast<{const}{tensor.type.c} *>(device[{number}])"
        for number, (const, tensor) in enumerate(zip(consts, tensors, strict=True))
    ]
    offset = 0
    for dimension in operator.dimensions:
        arguments.append(f"number<{_NUMBERS[dimension.format]}>(header + {offset})")
        offset += struct.calcsize(dimension.format)
    rows = dict.fromkeys(_row(operator, shape) for shape in shapes)
    return "\n".join((
        f"enum {{ HEADER = {operator.header_bytes}, INPUTS = {inputs}, OUTPUTS = {len(tensors) - inputs}, "
        f"PLANAR = {int(operator.planar_output)} }};",
        "struct row { unsigned char header[HEADER], counts[HEADER]; size_t bytes[INPUTS + OUTPUTS]; };",
        "static const row rows[] = {", *rows, "};",
        "template <typename T> static T number(const unsigned char *bytes) {",
        "    T value; std::memcpy(&value, bytes, sizeof value); return value;",
        "}",
        "static cudaError_t allocate(void **device, const size_t *bytes, size_t units) {",
        "    cudaError_t error = cudaSuccess;",
        *_allocations(tensors),
        "    return error;",
        "}",
        f"#define SOLVE(device, header) solve({', '.join(arguments)})", "",
    ))  # fmt: skip


def _allocations(tensors: tuple[Tensor, ...]) -> Iterator[str]:
    """A line for each tensor, in debug information that names it: reports then speak of an argument, not of a line that
    no student wrote."""
    for number, tensor in enumerate(tensors):
        yield f'#line 1 "{ARGUMENT}{tensor.name}"'
        yield f"    if (error == cudaSuccess) error = cudaMalloc(&device[{number}], units * bytes[{number}]);"
    yield f'#line 1 "{_SHAPES}"'


def _row(operator: Operator, shape: Shape) -> str:
    """A header, which of its bytes must agree, and the bytes of each tensor of a unit."""
    try:
        fewer = operator.shrink(shape, 1)
    except ValueError:
        fewer = shape
    counts = [
        int(first == second)
        for dimension, first, second in zip(operator.dimensions, shape, fewer, strict=True)
        for _ in range(struct.calcsize(dimension.format))
    ]
    sizes = [tensor.type.bytes * tensor.size for tensor in _tensors(operator, shape)]
    each = (", ".join(map(str, numbers)) for numbers in (operator.encode_header(shape), counts, sizes))
    return f"    {{{', '.join(f'{{{numbers}}}' for numbers in each)}}},"
