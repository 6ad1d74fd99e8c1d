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


class Arguments(_Model):
    """All arguments for one shape. `buffers` are the first buffers of the plan. `functions` has the names of the
    arguments of `solve`, and of `forward` and `backward` if this pair may take its place; what `forward` returns is the
    first argument of `backward`, `saved`."""

    buffers: tuple[FilePart, ...] = ()
    tensors: tuple[TensorArgument, ...] = ()
    numbers: Mapping[str, int | float] = {}
    functions: Mapping[str, tuple[str, ...]] = {"solve": ()}


def def_line(arguments: Arguments, name: str) -> str:
    """The line with which a submission may begin this function."""
    return f"def {name}({', '.join(arguments.functions[name])}):"


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
    functions = {"solve": (*names, *numbers)}
    if operator.differentiable:
        given, output, *gradients = names[: len(inputs)], *names[len(inputs) :]
        gradient = f"d{output}"
        functions["forward"] = (*(name for name in given if name != gradient), output, *numbers)
        functions["backward"] = ("saved", gradient, *gradients, *numbers)
    return Arguments(buffers=tuple(buffers), tensors=tuple(tensors), numbers=numbers, functions=functions)


def _tensor(operator: Operator, layout: Layout, buffer: int, begin: int) -> TensorArgument:
    size = layout.type.bytes
    columns = () if layout.tensor.is_vector else ((layout.tensor.columns, size),)
    dims = (*operator.dimensions_of(layout), *columns)
    return TensorArgument(
        name=layout.tensor.name.lower(),
        dtype=layout.type.words if layout.type.is_integer else layout.type.storage.name,
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
