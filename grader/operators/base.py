"""Defines the interface of an operator: the layout of its files, its float64 oracle and its cost.

An input file starts with a header of one little-endian int32 per dimension (float32 if the dimension is `real`).
Row-major float32 tensors follow. Input and output files hold the same few tensors for each *unit*, the piece that is
read and written at once (a batch, a head). The tensors lie unit after unit (Q0 K0 V0 Q1 K1 V1 …) or, for `planar`
outputs, tensor after tensor (all O, then all dQ, …). Readers, writers, checker and diagnosis only ever ask for "tensor
t of unit u", so an operator never handles offsets itself.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import UsageError

Shape = tuple[int | float, ...]
"""The numbers of the header, in its order: int, or float for a dimension that is `real`."""

Rows = slice | NDArray[np.intp]
"""Selected rows of an output tensor: a slice or an array of row numbers."""

Tensors = Sequence[NDArray[np.float32]]
"""The input tensors of one unit, in file order, each (rows, columns)."""

Step = Literal[
    "scale", "scores", "keys", "tile", "weight", "rescale", "output_sum", "total", "maximum", "division", "store",
    "store_scores", "load_q", "load_k", "load_v", "row", "batch", "launch", "copy_back", "write", "read",
]  # fmt: skip
"""A step of the computation, or of the program around it."""

BYTES_PER_VALUE = 4
"""Every tensor in every file is float32."""


@dataclass(frozen=True)
class Dimension:
    """One number of the header, and its legal values. `legal` completes the sentence "B must be {legal}". `real`: the
    number is a float32, such as a scale, rather than an int32."""

    name: str
    legal: str
    allows: Callable[[Any], bool]
    real: bool = False


@dataclass(frozen=True)
class Tensor:
    """One float32 matrix of one unit."""

    name: str
    rows: int
    columns: int

    @property
    def size(self) -> int:
        return self.rows * self.columns


@dataclass(frozen=True)
class Run:
    """A contiguous part of the output file that belongs to one tensor, of one or several units."""

    tensor: str
    first: int
    size: int


@dataclass(frozen=True)
class Location:
    """The location of an output value. `tensor` is empty if the operator has only one output tensor."""

    tensor: str
    unit: int
    row: int
    column: int
    label: str

    def __str__(self) -> str:
        place = f"row {self.row}, column {self.column}"
        return f"{self.label}, {place}" if self.label else place


@dataclass(frozen=True)
class Alternate:
    """A wrong way to compute the operator, to recognise it in a wrong output.

    `compute(shape, tensors, rows)` returns the rows `rows` that output tensor number `tensor` of a unit would have, in
    float64. `sentence` explains the mistake to a student and says where to look. `unless` is true for shapes for which
    this alternate is impossible, costs too much, or does not differ from the right answer. `steps` are the steps of the
    computation that the mistake makes suspect, the likeliest first.
    """

    name: str
    sentence: str
    compute: Callable[[Shape, Tensors, Rows], NDArray[np.float64]]
    unless: Callable[[Shape], bool] = lambda shape: False
    tensor: int = 0
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class GpuOracle:
    """An operator's oracle as a CUDA kernel, to make expected outputs quickly; numpy has the last word.

    The kernel `name` in the file `source` is compiled with `defines`. Its parameters are the input tensors of `units`
    units (as in the file, without the header), space for their output tensors, and then `arguments` (numpy scalars).
    Its grid is `grid(units)`. It must compute in float64 and round once, to float32.
    """

    source: Path
    name: str
    defines: Mapping[str, int]
    arguments: tuple[np.generic, ...]
    block: tuple[int, int, int]
    grid: Callable[[int], tuple[int, int, int]]
    shared_bytes: int


class Operator(ABC):
    """Subclass, fill in the attributes and the abstract methods, and assign an instance to OPERATOR."""

    name: str
    dimensions: tuple[Dimension, ...]
    unit: str = "batch"
    """The word for a unit in sentences; `units_name` is its plural."""
    units_name: str = "batches"
    planar_output: bool = False
    """Whether the output file holds tensor after tensor rather than unit after unit."""
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

    def exponentials(self, shape: Shape) -> int:
        """The exponentials of the whole problem, which `flops` does not include."""
        return 0

    def unavoidable(self, shape: Shape) -> tuple[int, int]:
        """(`flops`, `exponentials`) that every program needs. Conventional counts may be larger, since they
        include values that some programs compute again and others keep."""
        return self.flops(shape), self.exponentials(shape)

    def gpu_oracle(self, shape: Shape, largest: float) -> GpuOracle | None:
        """The oracle as a CUDA kernel, for inputs whose values are at most `largest` in magnitude; None if there is
        none. Only for operators with unit after unit in both files."""
        return None

    def shrink(self, shape: Shape, units: int) -> Shape:
        """The same problem with fewer units, to time a part of it. Raises ValueError if that is impossible."""
        raise ValueError(f"{self.name} cannot be made smaller")

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

    def tolerances(self, shape: Shape, tolerance: float | Mapping[str, float]) -> dict[str, float]:
        """The largest |got − expected| that passes for each output tensor of this shape, from the assignment's
        `tolerance`: one number, or one for each tensor by name. Raises UsageError if the names are not those of the
        tensors."""
        names = [t.name for t in self.outputs(shape)]
        if isinstance(tolerance, Mapping) and (unknown := sorted(set(tolerance) - set(names))):
            raise UsageError(f"tolerance: {self.name} has no output tensor {unknown[0]!r}; it has {', '.join(names)}.")
        return {name: tolerance_of(tolerance, name) * self.magnitude(shape, name) for name in names}

    # ---- header ---------------------------------------------------------------------------------------------

    @property
    def dimension_names(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.dimensions)

    @property
    def header_bytes(self) -> int:
        return 4 * len(self.dimensions)

    def encode_header(self, shape: Shape) -> bytes:
        """The header: four little-endian bytes per dimension, float32 if it is `real`, else int32."""
        return struct.pack(self._header_format, *self.canonical(shape))

    @property
    def _header_format(self) -> str:
        return "<" + "".join("f" if d.real else "i" for d in self.dimensions)

    def decode_header(self, data: bytes) -> Shape:
        """The inverse of encode_header, without validation."""
        return tuple(struct.unpack(self._header_format, data))

    def canonical(self, shape: Sequence[int | float]) -> Shape:
        """The numbers as decode_header would return them: real dimensions rounded to float32, others as int."""
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
        return BYTES_PER_VALUE * sum(t.size for t in self.inputs(shape))

    def unit_output_bytes(self, shape: Shape) -> int:
        return BYTES_PER_VALUE * sum(t.size for t in self.outputs(shape))

    def input_bytes(self, shape: Shape) -> int:
        """The exact size of an input file, including the header."""
        return self.header_bytes + self.units(shape) * self.unit_input_bytes(shape)

    def output_bytes(self, shape: Shape) -> int:
        """The exact size of an output file."""
        return self.units(shape) * self.unit_output_bytes(shape)

    def min_bytes(self, shape: Shape) -> int:
        """The least traffic with device memory: every input value is read once, every output value written once."""
        return sum(self.traffic(shape))

    def traffic(self, shape: Shape) -> tuple[int, int]:
        """(bytes of input, bytes of output) that must be read and written."""
        return self.units(shape) * self.unit_input_bytes(shape), self.output_bytes(shape)

    # ---- positions in files ---------------------------------------------------------------------------------

    def input_offset(self, shape: Shape, unit: int) -> int:
        """The byte offset of a unit's first input tensor."""
        return self.header_bytes + unit * self.unit_input_bytes(shape)

    def output_offset(self, shape: Shape, tensor: int, unit: int, row: int = 0) -> int:
        """The byte offset of a row in a unit's output tensor number `tensor`."""
        tensors = self.outputs(shape)
        before = sum(t.size for t in tensors[:tensor])
        if self.planar_output:
            values = before * self.units(shape) + unit * tensors[tensor].size
        else:
            values = unit * sum(t.size for t in tensors) + before
        return BYTES_PER_VALUE * (values + row * tensors[tensor].columns)

    def output_runs(self, shape: Shape) -> Iterator[Run]:
        """The longest contiguous parts of the output file that belong to one tensor, in file order."""
        tensors, units = self.outputs(shape), self.units(shape)
        if len(tensors) == 1 or self.planar_output:
            first = 0
            for tensor in tensors:
                yield Run(tensor.name, first, tensor.size * units)
                first += tensor.size * units
            return
        first = 0
        for _ in range(units):
            for tensor in tensors:
                yield Run(tensor.name, first, tensor.size)
                first += tensor.size

    def position(self, shape: Shape, index: int) -> tuple[int, int, int, int]:
        """(tensor, unit, row, column) of value number `index` of the output file."""
        tensors = self.outputs(shape)
        if self.planar_output:
            units = self.units(shape)
            for number, tensor in enumerate(tensors):
                if index < tensor.size * units:
                    unit, rest = divmod(index, tensor.size)
                    return number, unit, *divmod(rest, tensor.columns)
                index -= tensor.size * units
        else:
            unit, index = divmod(index, sum(t.size for t in tensors))
            if unit < self.units(shape):
                for number, tensor in enumerate(tensors):
                    if index < tensor.size:
                        return number, unit, *divmod(index, tensor.columns)
                    index -= tensor.size
        raise IndexError("index beyond the end of the output")

    def unit_label(self, shape: Shape, unit: int) -> str:
        """How a unit is named to people: "batch 3"."""
        return f"{self.unit} {unit}"

    def locate(self, shape: Shape, index: int) -> Location:
        """The location of value number `index` in the output file, such as "batch 3, row 17, column 5"."""
        tensor, unit, row, column = self.position(shape, index)
        tensors = self.outputs(shape)
        name = tensors[tensor].name if len(tensors) > 1 else ""
        label = self.unit_label(shape, unit)
        return Location(name, unit, row, column, f"{name} of {label}" if name else label)

    # ---- reading --------------------------------------------------------------------------------------------

    def split_unit(self, shape: Shape, values: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
        """Views of one unit's input values as tensors."""
        views, first = [], 0
        for tensor in self.inputs(shape):
            views.append(values[first : first + tensor.size].reshape(tensor.rows, tensor.columns))
            first += tensor.size
        return tuple(views)

    def read_unit(self, file: IO[bytes], shape: Shape, unit: int) -> tuple[NDArray[np.float32], ...]:
        """The input tensors of one unit, from an open input file. Raises UsageError if the file ends early."""
        size = self.unit_input_bytes(shape)
        file.seek(self.input_offset(shape, unit))
        data = file.read(size)
        if len(data) != size:
            raise UsageError(
                f"{file.name}: {size} bytes expected for {self.unit_label(shape, unit)}, found {len(data)}; "
                "the file is cut short, generate or copy it again."
            )
        return self.split_unit(shape, np.frombuffer(data, dtype="<f4"))

    def read_header(self, path: Path) -> Shape:
        """The shape in an input file's header, if it is legal and matches the file's size.

        Otherwise raises UsageError, with what was expected and found and what to do.
        """
        try:
            with path.open("rb") as file:
                data = file.read(self.header_bytes)
            size = path.stat().st_size
        except OSError as error:
            raise UsageError(f"{path}: cannot read the testcase input: {error.strerror}.") from error
        names = " ".join(self.dimension_names)
        if len(data) < self.header_bytes:
            raise UsageError(
                f"{path}: the header {names} takes {self.header_bytes} bytes, the file has {size}; "
                "generate or copy the testcase again."
            )
        shape = self.decode_header(data)
        if problem := self.problem(shape):
            raise UsageError(
                f"{path}: the header ({names}) is not legal: {problem}; generate or copy the testcase again."
            )
        expected = self.input_bytes(shape)
        if size != expected:
            values = ", ".join(f"{n} = {v}" for n, v in zip(self.dimension_names, shape, strict=True))
            fault = "cut short" if size < expected else "too long"
            raise UsageError(
                f"{path}: the file is {fault}: {values} takes {expected} bytes, found {size}; "
                "generate or copy the testcase again."
            )
        return shape


def sizes(shape: Shape) -> tuple[int, ...]:
    """The numbers as int, for arithmetic with sizes; a `real` number is truncated."""
    return tuple(int(number) for number in shape)


def shape_words(shape: Shape) -> str:
    """A shape as tables show it: 2 x 128 x 32."""
    return " x ".join(str(number) if isinstance(number, int) else f"{number:.4g}" for number in shape)


def tolerance_of(tolerance: float | Mapping[str, float], tensor: str) -> float:
    """The tolerance of one output tensor, from one number for all tensors or numbers by name."""
    if isinstance(tolerance, Mapping):
        if tensor not in tolerance:
            raise UsageError(
                f"No tolerance is given for output tensor {tensor}; given: {', '.join(tolerance) or 'none'}."
            )
        return tolerance[tensor]
    return tolerance
