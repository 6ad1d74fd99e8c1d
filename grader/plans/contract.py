"""What `solve` of a Python submission is called with, as an assignment's operator says.

The arguments are the input tensors, the output tensors and the header's numbers, by lower-case names. Tensors are views
of buffers. A buffer holds a part of the input or output file, as small as possible without cutting a tensor in two: so
each tensor of a plain layout has a buffer of its own, and packed tensors are strided views of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from grader.operators.base import Operator, Shape
from grader.operators.layout import Layout


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class FilePart(_Model):
    """The bytes of INPUT or OUTPUT that one buffer holds."""

    file: Literal["input", "output"]
    first: int
    size_bytes: int


class TensorArgument(_Model):
    """A tensor argument; `buffer` is the number of its buffer, `strides` and `offset` are in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: int
    offset: int


class Pair(_Model):
    """The names of the arguments of `forward` and `backward`, which may take the place of `solve`. `backward` first
    gets what `forward` returned."""

    forward: tuple[str, ...]
    backward: tuple[str, ...]


class Arguments(_Model):
    """All arguments for one shape. `buffers` are the first buffers of the plan."""

    buffers: tuple[FilePart, ...]
    tensors: tuple[TensorArgument, ...]
    numbers: Mapping[str, int | float]
    pair: Pair | None

    @property
    def names(self) -> tuple[str, ...]:
        return (*(tensor.name for tensor in self.tensors), *self.numbers)


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
    both: tuple[tuple[Literal["input", "output"], Sequence[Layout]], ...] = (("input", inputs), ("output", outputs))
    for file, layouts in both:
        places = dict[str, tuple[int, int]]()
        for together in _overlapping(layouts):
            first = min(layout.first for layout in together)
            places |= dict.fromkeys((layout.tensor.name for layout in together), (len(buffers), first))
            buffers.append(FilePart(file=file, first=first, size_bytes=max(map(_end, together)) - first))
        tensors += [_tensor(operator, layout, *places[layout.tensor.name]) for layout in layouts]
    named = zip(operator.dimension_names, operator.canonical(shape), strict=True)
    of_header = {name.lower(): number for name, number in named}
    numbers = {name: of_header[name] for name in operator.solve_numbers or of_header}
    names = [tensor.name for tensor in tensors]
    pair = _pair(operator, names, len(inputs), tuple(numbers))
    return Arguments(buffers=tuple(buffers), tensors=tuple(tensors), numbers=numbers, pair=pair)


def _pair(operator: Operator, names: Sequence[str], inputs: int, numbers: tuple[str, ...]) -> Pair | None:
    if not operator.differentiable:
        return None
    output = names[inputs]
    gradient = f"d{output}"
    forward = (*(name for name in names[:inputs] if name != gradient), output)
    return Pair(forward=(*forward, *numbers), backward=(gradient, *names[inputs + 1 :], *numbers))


def _tensor(operator: Operator, layout: Layout, buffer: int, begin: int) -> TensorArgument:
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
    )


def _end(layout: Layout) -> int:
    span = sum((count - 1) * stride for count, stride in (*layout.units, *layout.rows))
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
