"""The sentence on why a program does not compile, from the messages of the compiler and the linker."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.base.sizes import Sentence
from grader.course.assignment import Assignment
from grader.cpp.tree import leaves_of, line_of, name_of, parsed, walk
from grader.findings import short_kernel
from grader.programs.demangling import demangle
from grader.sandbox.room import Unreadable, confined

Files = Sequence[tuple[str, bytes]]

_LIBRARY_PREFIXES = {
    "cublasLt": "cuBLASLt",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cufft": "cuFFT",
    "curand": "cuRAND",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "cutensor": "cuTENSOR",
    "nccl": "NCCL",
    "nvrtc": "NVRTC",
    "nppc": "NPP",
}
_UNDEFINED = re.compile(r"undefined reference to [`'\"](\w+)")
_ERROR = re.compile(r"^\S.*?(?:\b[Ee]rror\b(?: #[\w-]+)?\s*:|multiple definition of).*$", re.MULTILINE)
"""A compiler's or linker's error message. It begins a line; source lines that the compiler quotes are indented."""
_STATIC_SHARED = re.compile(
    r"ptxas error\s*: Entry function '(\w+)' uses too much shared data \((0x[0-9a-f]+) bytes, (0x[0-9a-f]+) max\)"
)
_SLOW = re.compile(r"Compiling (?:took more than [\d.e+]{1,20} s(?: of processor time)?|left more than \d{1,9} MiB)")
_MISSING_HEADER = re.compile(r"fatal error: (\S+): No such file or directory")
_REFUSALS = (
    (
        re.compile(r"kernel launch from __device__ or __global__ functions requires separate compilation mode"),
        "It launches kernels from a kernel (dynamic parallelism): launch them all from the host.",
    ),
    (
        re.compile(r"requires --extended-lambda nvcc flag"),
        "Its lambdas marked __device__ need nvcc's flag --extended-lambda: hand in a Makefile that passes it.",
    ),
    (
        _MISSING_HEADER,
        r"It includes \1, which is neither in the submission nor in the CUDA toolkit here: hand it in, or remove the "
        "include.",
    ),
)
"""Compiler messages, each with a sentence for the student on the cause and the remedy."""

_ENDS_OPEN = re.compile(r'^At end of source: error: expected a "}"|error: a block-scope function may', re.MULTILINE)
_BEGINS_WITHIN = re.compile(
    r'^((\S+?)\((\d+)\)): error: (?:expected a ";"|a block-scope function|a template declaration)', re.MULTILINE
)
"""What nvcc says where the next function begins, if the one before has no end."""
_MAIN = re.compile(rb"\bint\s+main\s*\(")
_OTHER_SIGNATURE = re.compile(r"^(\S+?(?:\(\d+\)|:\d+)).*\b[Ee]rror\b.*\"solve\b.*", re.MULTILINE)
_SECOND_MAIN = re.compile(r"multiple definition of [`'\"]main")
_DRIVER_API = re.compile(rb"\b(cu(?:Init|Module|Library|Launch|CtxCreate)\w{0,40})\s*\(")


def failure_sentence(
    log: str,
    assignment: Assignment,
    *,
    lacking: bool = False,
    compiled: Files = (),
    uncompiled: Files = (),
    solve: str = "",
) -> str:
    """One sentence on why compiling failed. `lacking`: the emulator lacks what the program uses, as `log` says;
    `compiled` and `uncompiled`: the files that were handed in; `solve`: the signature of the function to hand in, if it
    is one."""
    try:
        return _sentence(log, assignment, lacking, compiled, uncompiled, solve)
    except Unreadable as unreadable:
        return f"It does not compile, and reading the compiler's messages {unreadable}."


@confined(cpu_s=10)
def _sentence(
    log: str, assignment: Assignment, lacking: bool, compiled: Files, uncompiled: Files, solve: str
) -> Sentence:
    """In the room, since these patterns can be slow on messages that were made for it."""
    if lacking:
        return f"The emulator cannot run this program: {first_line(log)}"
    if "__cudaCDP" in log:
        return (
            "It launches kernels from a kernel (dynamic parallelism), which this assignment forbids: launch them all "
            "from the host."
        )
    if (header := _MISSING_HEADER.search(log)) and (library := _forbidden_library(header[1], assignment)):
        return (
            f"It includes {header[1]}, which is neither in the submission nor in the CUDA toolkit here, and this "
            f"assignment forbids {library}: write that computation yourself."
        )
    if static := _STATIC_SHARED.search(log):
        kernel = short_kernel(demangle(static[1]))
        taken, most = int(static[2], 16), int(static[3], 16)
        return (
            f"{_kernel_at(kernel, compiled)} takes {taken:,} bytes of static shared memory, but a block may have at "
            f"most {most:,}: make its __shared__ arrays smaller. If it needs more, declare them as one `extern "
            "__shared__` array, give its size as the third argument in <<<…>>>, and before the launch call "
            f"cudaFuncSetAttribute({kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, size)."
        )
    if _ENDS_OPEN.search(log):
        within = _BEGINS_WITHIN.search(log)
        texts = [text for name, text in compiled if within is None or name == within[2]]
        which = _open_brace(texts[0], int(within[3]) if within else None) if len(texts) == 1 else ""
        where = f"{within[1]}: a closing }} is missing above this line" if within else "A closing } is missing"
        return f"{where}: {which or 'a function does not end'}."
    for found, sentence in _REFUSALS:
        if match := found.search(log):
            return match.expand(sentence)
    undefined = list(dict.fromkeys(_UNDEFINED.findall(log)))
    if solve and undefined == ["solve"]:
        return f"It does not define the function that is asked for: write {solve}."
    if solve and (conflict := _OTHER_SIGNATURE.search(log)):
        return (
            f"{conflict[1]}: solve has other parameters, or another result, than those that are called: write {solve}."
        )
    if solve and _SECOND_MAIN.search(log):
        return "It defines main, which the grader brings along: hand in solve and its kernels only."
    for name in undefined:
        if library := _forbidden_library(name, assignment):
            function = re.sub(r"_v\d+$", "", name)
            return (
                f"It calls {function} from {library}, which this assignment forbids: write that computation yourself."
            )
    if undefined == ["main"]:
        for name, content in (each for each in uncompiled if _MAIN.search(each[1])):
            if call := _DRIVER_API.search(content):
                return (
                    f"Its function main is in {name}, which calls {call[1].decode()} of the driver API; only programs "
                    "of the runtime API are run: compile the kernels into the program and launch them with <<<…>>>."
                )
            return f"Its function main is in {name}, which is not compiled: hand in a Makefile that compiles it."
        return "It has no function main, in which every program begins: write one."
    if undefined:
        return f"It calls {undefined[0]}, which is defined nowhere in the submission: hand in the file that defines it."
    if slow := _SLOW.findall(log):
        return f"{slow[-1]}: make the code, its templates or its initial values smaller."
    errors = [line for line in _ERROR.findall(log) if not line.startswith("collect2")]
    count = f" ({len(errors)} errors in all)" if len(errors) > 1 else ""
    return f"It does not compile{count}: {errors[0].strip() if errors else first_line(log)}"


def _open_brace(source: bytes, before: int | None) -> str:
    """Which { has lost its own } before a line, or before the end: the first whose } stands further left than the line
    of the {, or else the innermost that is not closed. '' if there is none."""
    opened, lines = list[int](), source.split(b"\n")
    for leaf in leaves_of(parsed(source)):
        line = line_of(leaf)
        if before is not None and line >= before:
            break
        if leaf.type == "{":
            opened.append(line)
        elif leaf.type == "}" and opened and not leaf.is_missing:
            number = opened.pop()
            begun = lines[number - 1]
            if leaf.start_point[1] < len(begun) - len(begun.lstrip()):
                return f"the }} of line {line} closes the {{ of line {number}, but stands further left"
    return f"the {{ of line {opened[-1]} is not closed" if opened else ""


def _kernel_at(kernel: str, compiled: Files) -> str:
    """ "kernel.cu:12: kernel tile<32>", the line on which it is defined; without it if no file defines it."""
    for file, text in compiled:
        for node in walk(parsed(text)):
            if node.type == "function_definition" and name_of(node) == kernel.partition("<")[0]:
                return f"{file}:{line_of(node)}: kernel {kernel}"
    return f"Kernel {kernel}"


def _forbidden_library(name: str, assignment: Assignment) -> str:
    """The forbidden library that a function or header belongs to, judged by its name; '' if there is none."""
    for prefix, library in _LIBRARY_PREFIXES.items():
        if name.lower().startswith(prefix.lower()) and prefix in assignment.build.forbidden_libraries:
            return library
    return ""


def first_line(log: str) -> str:
    return next((line.strip() for line in log.splitlines() if line.strip()), "the compiler printed nothing")
