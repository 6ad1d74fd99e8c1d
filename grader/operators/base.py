"""Defines the interface of an operator: the layout of its files, its float64 oracle and its cost.

An input file starts with a header of one little-endian int32 per dimension (float32 if the dimension is `real`, int64
if it is `wide`). The tensors follow, in their types. Input and output files hold the same few tensors for each *unit*,
the piece that is read and written at once (a batch, a head). Tensors are stored unit by unit (Q0 K0 V0 Q1 K1 V1 …).
`planar` outputs are stored tensor by tensor (all O, then all dQ, …), and a `layout` gives each tensor its own strides.
Readers, writers, checker and diagnosis only ever ask for "tensor t of unit u", so an operator never handles offsets
itself.

Expected outputs have the order of the output file. Their types are the same, but float32 in place of smaller floats.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import UsageError
from grader.operators.layout import Dims, Layout, Tensor, lay_out
from grader.operators.layout import vector as vector
from grader.operators.probes import Probe
from grader.operators.steps import Steps
from grader.operators.tolerance import ErrorRule, Limit, PlainErrors, TimesPlain, times_plain

Shape = tuple[int | float, ...]
"""The numbers of the header, in its order: int, or float for a dimension that is `real`."""

Rows = slice | NDArray[np.intp]
"""Selected rows of an output tensor: a slice or an array of row numbers."""

Tensors = Sequence[NDArray[Any]]
"""The input tensors of one unit, in file order, each (rows, columns), with values that their types can hold; small
floats are float32, all others have the tensor's own type."""

Draw = Callable[[int], NDArray[np.float32]]
"""Draws this many values from a testcase's distribution."""

Generator = Callable[[Shape, np.random.Generator], Tensors]
"""An instructor's own generator of one unit's input tensors."""


@dataclass(frozen=True)
class Dimension:
    """A number of the header and its legal values. `legal` completes the sentence "B must be {legal}". A `real` number
    is a float32, such as a scale, and not an int32; a `wide` one an int64."""

    name: str
    legal: str
    allows: Callable[[Any], bool]
    real: bool = False
    wide: bool = False

    @property
    def format(self) -> str:
        """The number's format for `struct`."""
        return "f" if self.real else "q" if self.wide else "i"


def size_of(name: str, most: int = 1 << 28, least: int = 1) -> Dimension:
    """A dimension that is a size from `least` to `most`."""
    return Dimension(name, f"from {least:,} to {most:,}", lambda v: least <= v <= most)


@dataclass(frozen=True)
class Location:
    """The location of an output value. `tensor` is empty if the operator has only one output tensor."""

    tensor: str
    unit: int
    row: int
    column: int
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Violation:
    """What `Operator.check` finds wrong: a `sentence` for the student on the worst or first place, which `tensor`,
    `row` and `column` name, and how many values are `wrong`."""

    sentence: str
    tensor: str = ""
    row: int = 0
    column: int = 0
    wrong: int = 1


@dataclass(frozen=True)
class Alternate:
    """A wrong way to compute the operator, to recognise it in a wrong output.

    `compute(shape, tensors, rows)` returns the rows `rows` that output tensor number `tensor` of a unit would have, in
    float64. `sentence` explains the mistake to a student and says where to look. `unless` is true for shapes for which
    this alternate is impossible, costs too much, or does not differ from the right answer.

    `rounding` marks a loss of precision, whose result is near the right one. It is recognised if the errors of a wrong
    output correlate with those of `compute`.
    """

    name: str
    sentence: str
    compute: Callable[[Shape, Tensors, Rows], NDArray[np.float64]]
    unless: Callable[[Shape], bool] = lambda shape: False
    tensor: int = 0
    rounding: bool = False


@dataclass(frozen=True)
class Kernel:
    """A kernel of a `GpuOracle`, which has so many `blocks` for each unit."""

    name: str
    blocks: int
    shared_bytes: int


@dataclass(frozen=True)
class GpuOracle:
    """An operator's oracle as CUDA kernels, which make expected outputs quickly. `verify` checks their results against
    numpy.

    The `kernels` in the file `source` are compiled with `defines` and run one after the other, in blocks of `threads`
    threads, unit after unit. Their parameters are the input tensors of some units, space for the output tensors,
    `scratch_bytes` per unit for results that one kernel passes to the next, and then `arguments` (numpy scalars). Here
    tensors are float32, unit after unit, whatever their types and order in the files. The kernels must compute in
    float64 and round once, to float32. With `plain`, the results of the plain implementation (`Operator.plain`) for all
    units follow the right ones.
    """

    source: Path
    kernels: tuple[Kernel, ...]
    threads: int
    defines: Mapping[str, int]
    arguments: tuple[np.generic, ...]
    scratch_bytes: int
    plain: bool


class Operator(ABC):
    """Subclass, fill in the attributes and the abstract methods, and assign an instance to OPERATOR."""

    name: str
    dimensions: tuple[Dimension, ...]
    unit: str = "batch"
    """The word for a unit in sentences; `units_name` is its plural."""
    units_name: str = "batches"
    planar_output: bool = False
    """Whether the output file holds tensor after tensor rather than unit after unit."""
    solve_numbers: tuple[str, ...] = ()
    """The header's numbers, in lower case, that `solve` of a Python submission gets; all if this is empty."""
    independent_rows: bool = True
    """Whether the oracle can compute some rows at a proportional cost. If not, it always computes all rows."""

    # ---- what an operator must define -----------------------------------------------------------------------

    @abstractmethod
    def units(self, shape: Shape) -> int:
        """The number of units in a file of this shape."""

    @abstractmethod
    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        """The input tensors of one unit, in file order."""

    @abstractmethod
    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        """The output tensors of one unit, in file order."""

    @abstractmethod
    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[NDArray[np.float64], ...]:
        """The right output of one unit in float64: the rows `rows` of each output tensor."""

    @abstractmethod
    def flops(self, shape: Shape) -> int:
        """The floating-point operations of the whole problem that count for GFLOP/s."""

    def plain(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[NDArray[np.float32], ...]:
        """The rows `rows` of each output tensor computed by a plain implementation, which rounds every intermediate
        result to the tensors' type and sums in float32. A tolerance `times_plain` is a multiple of its errors. Empty if
        the operator has no plain implementation."""
        return ()

    def with_other_rows(
        self, shape: Shape, tensors: Tensors, outputs: Tensors, rows: NDArray[np.intp], draw: Draw
    ) -> tuple[Tensors, Tensors] | None:
        """Change some rows of a unit's input without computing its whole output again. The rows `rows` of the first
        tensor, and of the tensors that have a row for each of its rows (dO for Q), get new values from `draw`. Returns
        the changed tensors and their right outputs; `outputs` are those of the old ones. None if the oracle is as quick
        for all rows."""
        return None

    differentiable: bool = False
    """Whether the first output O is a `function` of the inputs, and every further output dX the gradient of Σ dO ∘ O
    with respect to the input X. dO is then an input, too."""

    def function(self, shape: Shape, tensors: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """O of one unit in float64, if the operator is `differentiable`."""
        raise NotImplementedError

    def exponentials(self, shape: Shape) -> int:
        """The exponentials of the whole problem, which `flops` does not include."""
        return 0

    def unavoidable(self, shape: Shape) -> tuple[int, int]:
        """The (`flops`, `exponentials`) that every program needs. The usual counts may be larger, because they include
        values that some programs keep and others compute again."""
        return self.flops(shape), self.exponentials(shape)

    def gpu_oracle(self, shape: Shape) -> GpuOracle | None:
        """The oracle as CUDA kernels; None if there is none."""
        return None

    def shrink(self, shape: Shape, units: int) -> Shape:
        """The same problem with fewer units, to time a part of it. Raises ValueError if that is impossible."""
        raise ValueError(f"{self.name} cannot be made smaller")

    def check(self, shape: Shape, inputs: Tensors, outputs: Tensors) -> Violation | None:
        """What is wrong with one unit's output, where several are right; None if nothing is. It decides in place of the
        comparison with what `oracle` returns, which is then one right answer among others."""
        return None

    @property
    def has_check(self) -> bool:
        return type(self).check is not Operator.check

    def generators(self) -> Mapping[str, Generator]:
        """Functions that make input tensors, by the names that `{kind: own, name: …}` uses in the testcases' YAML."""
        return {}

    def steps(self, shape: Shape) -> Steps | None:
        """The steps of a right computation, by which the watch finds the line of a mistake; None if the operator
        declares none."""
        return None

    def probes(self, shape: Shape) -> tuple[Probe, ...]:
        """Experiments that show a mistake in a program that fails on this shape: small inputs, of this kind of
        shape."""
        return ()

    def alternates(self) -> tuple[Alternate, ...]:
        """Likely mistakes, the likeliest first."""
        return ()

    def relation(self, shape: Shape) -> str:
        """A sentence on the rule between dimensions that `shape` breaks; '' if it breaks none."""
        return ""

    def magnitude(self, shape: Shape, tensor: str) -> float:
        """The factor by which the assignment's tolerance is multiplied for output `tensor` of this shape. It is for
        outputs whose rounding errors grow or shrink with the problem, such as the probabilities in a row, which are
        1/columns on average."""
        return 1.0

    # ---- tolerance ------------------------------------------------------------------------------------------

    def tolerances(
        self,
        shape: Shape,
        tolerance: float | ErrorRule | Mapping[str, float | ErrorRule] | TimesPlain,
        plain: Mapping[str, PlainErrors] | None = None,
    ) -> dict[str, float | Limit]:
        """The largest errors that pass, for each output tensor of this shape. The assignment's `tolerance` is one
        number or rule, one for each tensor by name (`course.coherence` checks the names), or a multiple of the errors
        `plain`. Raises UsageError if it needs `plain` and there is none."""
        layouts = {layout.tensor.name: layout for layout in self.output_layouts(shape)}
        if isinstance(tolerance, TimesPlain):
            if not plain:
                raise UsageError(f"{self.name}: the testcase has no errors of a plain implementation to compare with.")
            return {
                name: times_plain(plain[name], layout.type, layout.values, tolerance.of(name))
                for name, layout in layouts.items()
            }
        rules = tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(layouts, tolerance)
        limits: dict[str, float | Limit] = {}
        for name, layout in layouts.items():
            rule, magnitude = rules[name], self.magnitude(shape, name)
            limits[name] = rule.limit(layout.type, magnitude) if isinstance(rule, ErrorRule) else rule * magnitude
        return limits

    # ---- header ---------------------------------------------------------------------------------------------

    @property
    def dimension_names(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.dimensions)

    @property
    def _header(self) -> struct.Struct:
        """Little-endian numbers, without gaps."""
        return struct.Struct("<" + "".join(d.format for d in self.dimensions))

    @property
    def header_bytes(self) -> int:
        return self._header.size

    def encode_header(self, shape: Shape) -> bytes:
        return self._header.pack(*self.canonical(shape))

    def canonical(self, shape: Sequence[int | float]) -> Shape:
        """The numbers as read_header would return them: real dimensions rounded to float32, others as int."""
        pairs = zip(self.dimensions, shape, strict=True)
        return tuple(float(np.float32(value)) if d.real else int(value) for d, value in pairs)

    def problem(self, shape: Sequence[int | float]) -> str:
        """A phrase on what is illegal about `shape` ("B must be …, found …"); '' if it is legal."""
        if len(shape) != len(self.dimensions):
            names = ", ".join(self.dimension_names)
            return f"{len(self.dimensions)} numbers ({names}) expected, found {len(shape)}"
        for dimension, value in zip(self.dimensions, shape, strict=True):
            if not dimension.real and int(value) != value:
                return f"{dimension.name} must be a whole number, found {dimension.name} = {value}"
            if not dimension.allows(value):
                return f"{dimension.name} must be {dimension.legal}, found {dimension.name} = {value}"
        return self.relation(tuple(shape))

    # ---- sizes ----------------------------------------------------------------------------------------------

    def unit_input_bytes(self, shape: Shape) -> int:
        return sum(t.type.bytes * t.size for t in self.inputs(shape))

    def unit_input_values(self, shape: Shape) -> int:
        return sum(t.size for t in self.inputs(shape))

    def unit_output_bytes(self, shape: Shape) -> int:
        return sum(t.type.bytes * t.size for t in self.outputs(shape))

    def input_bytes(self, shape: Shape) -> int:
        """The exact size of an input file, including the header."""
        return self.header_bytes + self.units(shape) * self.unit_input_bytes(shape)

    def output_bytes(self, shape: Shape) -> int:
        """The exact size of an output file."""
        return self.units(shape) * self.unit_output_bytes(shape)

    def expected_bytes(self, shape: Shape) -> int:
        """The exact size of a file of expected output."""
        return self.units(shape) * sum(t.type.computed.itemsize * t.size for t in self.outputs(shape))

    # ---- positions in files ---------------------------------------------------------------------------------

    def input_layouts(self, shape: Shape) -> tuple[Layout, ...]:
        return lay_out(self.inputs(shape), self.units(shape), planar=False, start=self.header_bytes)

    def output_layouts(self, shape: Shape) -> tuple[Layout, ...]:
        return lay_out(self.outputs(shape), self.units(shape), planar=self.planar_output)

    def expected_layouts(self, shape: Shape) -> tuple[Layout, ...]:
        return lay_out(self.outputs(shape), self.units(shape), planar=self.planar_output, computed=True)

    def dimensions_of(self, layout: Layout) -> Dims:
        """The dimensions of a tensor as `solve` of a Python submission gets it, except the columns."""
        return (*layout.units, *layout.rows)

    def unit_label(self, shape: Shape, unit: int) -> str:
        """The name of a unit in sentences: "batch 3"."""
        return f"{self.unit} {unit}"

    def locate(self, shape: Shape, place: int) -> Location:
        """The location of the value at byte `place` of the expected output, such as "batch 3, row 17, column 5"."""
        at = np.array([place])
        for layout in self.expected_layouts(shape):
            (unit,), (row,), (column,) = (numbers.tolist() for numbers in layout.find(at))
            if unit >= 0:
                return self.location(shape, layout.tensor.name, unit, row, column)
        raise IndexError("a place beyond the end of the output")

    def location(self, shape: Shape, tensor: str, unit: int, row: int, column: int) -> Location:
        outputs = self.outputs(shape)
        name = tensor if len(outputs) > 1 else ""
        label = " of ".join(filter(None, (name, self.unit_label(shape, unit))))
        in_vector = any(each.is_vector for each in outputs if each.name == tensor)
        place = f"element {row}" if in_vector else f"row {row}, column {column}"
        return Location(name, unit, row, column, f"{label}, {place}" if label else place)

    # ---- reading and writing --------------------------------------------------------------------------------

    def split_unit(self, shape: Shape, values: NDArray[np.float32]) -> tuple[NDArray[Any], ...]:
        """One unit's input values as tensors, rounded to their types; views of float32 values."""
        inputs = self.inputs(shape)
        parts = np.split(values, np.cumsum([tensor.size for tensor in inputs])[:-1])
        return tuple(t.type.rounded(part.reshape(t.rows, t.columns)) for t, part in zip(inputs, parts, strict=True))

    def read_unit(self, file: IO[bytes], shape: Shape, unit: int) -> tuple[NDArray[Any], ...]:
        """The input tensors of one unit, from an open input file. Raises UsageError if the file ends early."""
        tensors = []
        for layout in self.input_layouts(shape):
            values = layout.read(file.fileno(), unit)
            if values is None:
                raise UsageError(
                    f"{file.name}: the file ends before {layout.tensor.name} of {self.unit_label(shape, unit)}; "
                    "it is cut short, generate or copy it again."
                )
            tensors.append(values)
        return tuple(tensors)

    def write_unit(self, descriptor: int, shape: Shape, unit: int, tensors: Tensors) -> None:
        """Write the input tensors of one unit into an open input file."""
        for layout, values in zip(self.input_layouts(shape), tensors, strict=True):
            layout.write(descriptor, unit, values)

    def read_header(self, path: Path) -> Shape:
        """The shape in an input file's header, if it is legal and matches the file's size.

        Otherwise raises UsageError, with what was expected and found and what to do.
        """
        again = "generate or copy the testcase again"
        try:
            with path.open("rb") as file:
                data = file.read(self.header_bytes)
            size = path.stat().st_size
        except OSError as error:
            raise UsageError(f"{path}: cannot read the testcase input: {error.strerror}.") from error
        names = " ".join(self.dimension_names)
        if len(data) < self.header_bytes:
            raise UsageError(
                f"{path}: the header {names} takes {self.header_bytes} bytes, the file has {size}; {again}."
            )
        shape = self._header.unpack(data)
        if problem := self.problem(shape):
            raise UsageError(f"{path}: the header ({names}) is not legal: {problem}; {again}.")
        expected = self.input_bytes(shape)
        if size != expected:
            values = ", ".join(f"{n} = {v}" for n, v in zip(self.dimension_names, shape, strict=True))
            fault = "cut short" if size < expected else "too long"
            raise UsageError(f"{path}: the file is {fault}: {values} takes {expected} bytes, found {size}; {again}.")
        return shape


class WholeOperator(Operator):
    """An operator whose files hold each tensor once: the whole problem is one unit."""

    unit, units_name = "problem", "problems"

    def units(self, shape: Shape) -> int:
        return 1

    def dimensions_of(self, layout: Layout) -> Dims:
        return layout.rows

    def unit_label(self, shape: Shape, unit: int) -> str:
        return ""


def sizes(shape: Shape) -> tuple[int, ...]:
    """The numbers as int, for arithmetic with sizes; a `real` number is truncated."""
    return tuple(int(number) for number in shape)


def shape_words(shape: Shape) -> str:
    """A shape in the form that tables show: 2 x 128 x 32."""
    return " x ".join(str(number) if isinstance(number, int) else f"{number:.4g}" for number in shape)
