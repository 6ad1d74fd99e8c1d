"""Finds the line of a Triton program that a diagnosis refers to, in its syntax tree.

The steps are those of `suspects`, which searches CUDA programs. Here a step is known by the function of Triton that
does it: an exponential of a difference with a score is the weight, one of a difference of maxima rescales, a matrix
product makes the scores or, if there is another one, adds to the output.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from grader.checking.source_lines import Line
from grader.operators.base import Step

MOST_BYTES = 1 << 18
"""A longer program is not searched."""
_LOADS: dict[Step, str] = {"load_q": r"\b[qax]", "load_k": r"\b[kb]", "load_v": r"\bv"}
"""For each input, how names of its pointer begin."""


class TritonLines:
    """Finds the lines of steps in a submission."""

    def __init__(self, files: Sequence[tuple[str, bytes]]) -> None:
        self._programs: list[_Program] = []
        for name, content in files:
            if name.endswith(".py") and len(content) <= MOST_BYTES:
                with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                    self._programs.append(_Program(name, content.decode()))

    def of(self, step: Step) -> Iterator[Line]:
        """The lines with a step, the likeliest first."""
        for program in self._programs:
            yield from program.lines(step)


class _Program:
    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text.splitlines()
        tree = ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        kernels = [node for node in functions if any("jit" in ast.unparse(each) for each in node.decorator_list)]
        inside = {id(part) for kernel in kernels for part in ast.walk(kernel)}
        statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
        loops = [node for kernel in kernels for node in ast.walk(kernel) if isinstance(node, ast.For | ast.While)]
        self._loops = sorted(loops, key=lambda node: node.lineno)
        self._in_kernels = sorted((node for node in statements if id(node) in inside), key=lambda node: node.lineno)
        self._on_host = sorted((node for node in statements if id(node) not in inside), key=lambda node: node.lineno)
        self._maxima = self._names_of_maxima()

    def lines(self, step: Step) -> Iterator[Line]:
        seen = set[int]()
        for node in self._nodes(step):
            if node.lineno not in seen:
                seen.add(node.lineno)
                text = self._text[node.lineno - 1]
                yield Line(self._name, node.lineno, text.partition(" #")[0], text.partition("#")[0])

    def _nodes(self, step: Step) -> Iterable[ast.stmt]:
        match step:
            case "weight":
                return self._exponentials(rescales=False)
            case "rescale":
                return self._exponentials(rescales=True)
            case "exponential":
                return [*self._exponentials(rescales=True), *self._exponentials(rescales=False)]
            case "maximum" | "score_start":
                return self._calling("max", "maximum")
            case "next_maximum" | "state_start":
                return self._keeping_maxima(at_start=step == "state_start")
            case "total":
                return self._calling("sum")
            case "scores":
                return [*self._calling("dot")[:1], *self._calling("sum")[:1]]
            case "output_sum":
                return [*self._calling("dot")[-1:], *self._calling("sum")]
            case "scale":
                return self._matching(r"\b\w*scale\w*\s*\*|\*\s*\w*scale|sqrt")
            case "division":
                return [*self._sums_of_divisors(), *self._divisions()]
            case "store" | "copy_back":
                return [*self._calling("store"), *self._calling("atomic_add")]
            case "load_q" | "load_k" | "load_v":
                return self._matching(rf"load\w*\([^,]*?{_LOADS[step]}")
            case "keys" | "bound" | "tile":
                return self._loops
            case "row" | "batch" | "columns":
                return self._matching(r"\barange\(" if step == "columns" else r"\bprogram_id\(")
            case "launch" | "grid":
                return [each for each in self._on_host if _has(each, _is_launch)]
            case "read_order":
                return self._matching(r"\breshape\(|\bfrom_numpy\(", host=True)
            case "read" | "header":
                return self._matching(r"\b(?:fromfile|frombuffer|memmap|unpack)\(", host=True)
            case "write" | "write_count":
                return self._matching(r"\b(?:tofile|write|save)\(", host=True)
            case _:
                return ()

    def _matching(self, pattern: str, *, host: bool = False) -> list[ast.stmt]:
        return [node for node in (self._on_host if host else self._in_kernels) if re.search(pattern, ast.unparse(node))]

    def _calling(self, *names: str) -> list[ast.stmt]:
        return [node for node in self._in_kernels if any(_called(call) in names for call in _calls(node))]

    def _exponentials(self, *, rescales: bool) -> list[ast.stmt]:
        def is_wanted(call: ast.Call) -> bool:
            names = {name for argument in call.args for name in _names(argument)}
            return _called(call) in ("exp", "exp2") and (bool(names) and names <= self._maxima) == rescales

        return [node for node in self._in_kernels if any(map(is_wanted, _calls(node)))]

    def _divisions(self) -> list[ast.stmt]:
        return [node for node in self._in_kernels if any(_divisors(node))]

    def _sums_of_divisors(self) -> list[ast.stmt]:
        """The statements in loops that add to a number by which another statement divides."""
        names = {name for node in self._divisions() for divisor in _divisors(node) for name in _names(divisor)}
        repeated = {id(part) for loop in self._loops for part in ast.walk(loop)}
        adding = (
            node for node in self._in_kernels if id(node) in repeated and isinstance(node, ast.Assign | ast.AugAssign)
        )
        return [node for node in adding if names & _targets(node)]

    def _keeping_maxima(self, *, at_start: bool) -> list[ast.stmt]:
        """The statements that set a maximum to another one, or to its first value."""
        kept = [each for each in self._in_kernels if isinstance(each, ast.Assign) and _targets(each) & self._maxima]
        return [each for each in kept if (_is_first_value if at_start else _is_name)(each.value)]

    def _names_of_maxima(self) -> set[str]:
        found = set[str]()
        assignments = [node for node in self._in_kernels if isinstance(node, ast.Assign)]
        for _ in range(3):  # m = new = tl.maximum(…)
            for node in assignments:
                names = _targets(node)
                called = {_called(call) for call in _calls(node.value)}
                copied = isinstance(node.value, ast.Name) and (node.value.id in found or bool(names & found))
                if called & {"max", "maximum"} or _is_first_value(node.value) or copied:
                    found |= names
        return found


def _is_first_value(node: ast.expr) -> bool:
    """Whether it is a constant −∞, which is where maxima begin."""
    return "inf" in ast.unparse(node) and not {_called(call) for call in _calls(node)} & {"load", "max", "maximum"}


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _targets(node: ast.Assign | ast.AugAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {name for target in targets for name in _names(target)}


def _divisors(node: ast.AST) -> Iterator[ast.expr]:
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
            yield part.right


def _has(node: ast.AST, is_it: Callable[[ast.AST], bool]) -> bool:
    return any(map(is_it, ast.walk(node)))


def _is_launch(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
