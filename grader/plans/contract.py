"""What `solve` of a Python submission is called with, as an assignment's operator says.

The arguments are the input tensors, the output tensors and the header's numbers, by lower-case names. Tensors are views
of buffers. A buffer holds a part of the input or output file, as small as possible without cutting a tensor in two: so
each tensor of a plain layout has a buffer of its own, and packed tensors are strided views of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from grader.operators.base import Operator, Shape
from grader.operators.layout import Dims, Layout


@dataclass(frozen=True)
class FilePart:
    """The bytes of INPUT or OUTPUT that one buffer holds."""

    file: Literal["input", "output"]
    first: int
    size_bytes: int


@dataclass(frozen=True)
class TensorArgument:
    """A tensor argument; `buffer` is the number of its buffer, `strides` and `offset` are in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: int
    offset: int
    is_output: bool


@dataclass(frozen=True)
class Pair:
    """The names of the arguments of `forward` and `backward`, which may take the place of `solve`. `backward` first
    gets what `forward` returned."""

    forward: tuple[str, ...]
    backward: tuple[str, ...]


@dataclass(frozen=True)
class Arguments:
    """All arguments for one shape. `buffers` are the first buffers of the plan."""

    buffers: tuple[FilePart, ...]
    tensors: tuple[TensorArgument, ...]
    numbers: Mapping[str, int | float]
    pair: Pair | None

    @property
    def names(self) -> tuple[str, ...]:
        return (*(tensor.name for tensor in self.tensors), *self.numbers)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Arguments:
        tensors = (
            TensorArgument(**{**each, "shape": tuple(each["shape"]), "strides": tuple(each["strides"])})
            for each in data["tensors"]
        )
        pair = Pair(*map(tuple, data["pair"].values())) if data["pair"] else None
        return Arguments(tuple(FilePart(**each) for each in data["buffers"]), tuple(tensors), data["numbers"], pair)


def def_lines(arguments: Arguments) -> tuple[str, ...]:
    """The lines with which a submission may begin its function, or its pair of functions."""
    pair = arguments.pair
    lines = [f"def solve({', '.join(arguments.names)}):"]
    if pair is not None:
        lines += [f"def forward({', '.join(pair.forward)}):", f"def backward(saved, {', '.join(pair.backward)}):"]
    return tuple(lines)


def arguments_of(operator: Operator, shape: Shape) -> Arguments:
    """The arguments for a shape of an operator."""
    inputs, outputs = operator.input_layouts(shape), operator.output_layouts(shape)
    buffers, tensors = list[FilePart](), list[TensorArgument]()
    for file, layouts in (("input", inputs), ("output", outputs)):
        for together in _overlapping(layouts):
            first = min(layout.first for layout in together)
            buffers.append(FilePart(file, first, max(map(_end, together)) - first))  # type: ignore[arg-type]
        for layout in layouts:
            number = next(
                number for number, part in enumerate(buffers)
                if part.file == file and part.first <= layout.first < part.first + part.size_bytes
            )  # fmt: skip
            tensors.append(_tensor(operator, layout, number, buffers[number].first, is_output=file == "output"))
    named = zip(operator.dimension_names, operator.canonical(shape), strict=True)
    of_header = {name.lower(): number for name, number in named}
    numbers = {name: of_header[name] for name in operator.solve_numbers or of_header}
    names = [tensor.name for tensor in tensors]
    return Arguments(tuple(buffers), tuple(tensors), numbers, _pair(operator, names, len(inputs), tuple(numbers)))


def _pair(operator: Operator, names: Sequence[str], inputs: int, numbers: tuple[str, ...]) -> Pair | None:
    if not operator.differentiable:
        return None
    output = names[inputs]
    gradient = f"d{output}"
    forward = (*(name for name in names[:inputs] if name != gradient), output)
    return Pair((*forward, *numbers), (gradient, *names[inputs + 1 :], *numbers))


def _tensor(operator: Operator, layout: Layout, buffer: int, begin: int, *, is_output: bool) -> TensorArgument:
    size = layout.type.bytes
    columns = () if layout.tensor.is_vector else ((layout.tensor.columns, size),)
    dims = (*operator.dimensions_of(layout), *columns)
    return TensorArgument(
        name=layout.tensor.name.lower(),
        dtype=layout.type.torch or layout.type.words,
        shape=tuple(count for count, _ in dims),
        strides=tuple(stride // size for _, stride in dims),
        buffer=buffer,
        offset=(layout.first - begin) // size,
        is_output=is_output,
    )


def _dimensions(layout: Layout) -> Dims:
    return (*layout.units, *layout.rows)


def _end(layout: Layout) -> int:
    span = sum((count - 1) * stride for count, stride in _dimensions(layout))
    return layout.first + span + layout.tensor.columns * layout.type.bytes


def _overlapping(layouts: Sequence[Layout]) -> list[list[Layout]]:
    """The layouts in groups of which no two share bytes between their first and their last value."""
    groups = list[list[Layout]]()
    for layout in sorted(layouts, key=lambda each: each.first):
        if groups and layout.first < max(map(_end, groups[-1])):
            groups[-1].append(layout)
        else:
            groups.append([layout])
    return groups
