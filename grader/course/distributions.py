"""The values of testcases: what a group's `distribution` in testcases/NAME.yaml can say.

`uniform`, `normal` and `constant` give every tensor the same kind of numbers; `integers`, `permutation` and `image`,
too. `graph` makes the tensors of a graph or a sparse matrix. `each` names a distribution for each tensor, and `own`
calls a function of the operator (`Operator.generators`). All draw from one numpy Generator for each unit, so a unit's
values depend on nothing but its key (grader.course.seeds); a release of numpy may change what a Generator draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from statistics import NormalDist
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from grader.base.errors import UsageError
from grader.base.yaml_model import StrictModel
from grader.operators import Operator, Shape, Tensor

Array = NDArray[Any]
_Float32 = Annotated[float, Field(ge=-1e38, le=1e38)]
"""A value or bound that is small enough for differences to fit in float32."""


class _Distribution(StrictModel):
    kind: str

    def __str__(self) -> str:
        """Its name in the testcase's identity and sidecar."""
        keys = self.model_dump(exclude={"kind"}, exclude_defaults=True)
        return f"{self.kind}({', '.join(f'{key} {value}' for key, value in keys.items())})"

    def of_tensor(self, tensor: Tensor, numbers: Mapping[str, int | float], random: np.random.Generator) -> Array:
        """The values of one tensor; `numbers` are those of the header by name."""
        raise UsageError(f"The distribution {self.kind} makes all tensors at once: it cannot be that of one of them.")

    def of_unit(self, operator: Operator, shape: Shape, random: np.random.Generator) -> tuple[Array, ...]:
        """The values of all input tensors of one unit."""
        numbers = dict(zip(operator.dimension_names, shape, strict=True))
        return tuple(self.of_tensor(tensor, numbers, random) for tensor in operator.inputs(shape))


class _Plain(_Distribution):
    """A distribution of single values, each from one random number."""

    def values(self, u: NDArray[np.float32]) -> NDArray[np.float32]:
        """Turn multiples of 2^-24 in [0, 1) into values, in place."""
        raise NotImplementedError

    def of_tensor(self, tensor: Tensor, numbers: Mapping[str, int | float], random: np.random.Generator) -> Array:
        return self.values(random.random(tensor.size, np.float32))


class Uniform(_Plain):
    """Uniform in [low, high), rounded to float32."""

    kind: Literal["uniform"] = "uniform"
    low: _Float32
    high: _Float32

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if not self.low < self.high:
            raise ValueError("low must be less than high")
        return self

    def __str__(self) -> str:
        return f"uniform({self.low:g}, {self.high:g})"

    def values(self, u: NDArray[np.float32]) -> NDArray[np.float32]:
        u *= np.float32(self.high - self.low)
        u += np.float32(self.low)
        return u


class Constant(_Plain):
    """A constant value, for testcases whose answer can be worked out by hand."""

    kind: Literal["constant"]
    value: _Float32

    def __str__(self) -> str:
        return f"constant({self.value:g})"

    def values(self, u: NDArray[np.float32]) -> NDArray[np.float32]:
        u[:] = self.value
        return u


class Normal(_Plain):
    """Standard normal, clipped to ±`clip`. A value is one of 65,536 equally likely quantiles. Their table depends on
    the machine's logarithm, but only beyond float32's precision."""

    kind: Literal["normal"]
    clip: Annotated[float, Field(gt=0, le=8)]

    def __str__(self) -> str:
        return f"normal(clip {self.clip:g})"

    def values(self, u: NDArray[np.float32]) -> NDArray[np.float32]:
        quantiles = _normal_quantiles()
        return np.clip(quantiles[(u * len(quantiles)).astype(np.intp)], -self.clip, self.clip, out=u)


@cache
def _normal_quantiles() -> NDArray[np.float32]:
    count = 1 << 16
    upper = [NormalDist().inv_cdf((number + 0.5) / count) for number in range(count // 2, count)]
    return np.array([*(-value for value in reversed(upper)), *upper], np.float32)


class Integers(_Distribution):
    """Integers from `low` to `high` − 1; either may be the name of a dimension. `zipf`: the n-th smallest is drawn
    about 1/n as often as the smallest. `few`: four different values."""

    kind: Literal["integers"]
    low: int | str = 0
    high: int | str
    pattern: Literal["uniform", "zipf", "sorted", "reversed", "few", "equal"] = "uniform"

    def of_tensor(self, tensor: Tensor, numbers: Mapping[str, int | float], random: np.random.Generator) -> Array:
        low, high = (_number(end, numbers) for end in (self.low, self.high))
        if not low < high:
            raise UsageError(f"integers: low must be less than high, found {low} and {high}.")
        if self.pattern == "zipf":
            return low + _log_uniform(high - low, tensor.size, random)
        different = {"few": 4, "equal": 1}.get(self.pattern)
        if different is not None:
            return random.integers(low, high, different)[random.integers(0, different, tensor.size)]
        drawn = random.integers(low, high, tensor.size)
        if self.pattern != "uniform":
            drawn.sort()
        return drawn[::-1] if self.pattern == "reversed" else drawn


class Permutation(_Distribution):
    """Every number below the tensor's size once, in random order."""

    kind: Literal["permutation"]

    def of_tensor(self, tensor: Tensor, numbers: Mapping[str, int | float], random: np.random.Generator) -> Array:
        return random.permutation(tensor.size)


class Image(_Distribution):
    """A picture of waves and a bright rectangle under some noise: 0 to 255 for integers, 0 to 1 for floats. A pixel of
    `channels` bytes takes so many columns, as in a PPM file."""

    kind: Literal["image"]
    channels: Annotated[int, Field(ge=1, le=4)] = 1

    def of_tensor(self, tensor: Tensor, numbers: Mapping[str, int | float], random: np.random.Generator) -> Array:
        rows, columns = tensor.rows, max(1, tensor.columns // self.channels)
        y, x = (np.linspace(0, 1, count, dtype=np.float32) for count in (rows, columns))
        picture = np.zeros((rows, columns, self.channels), np.float32)
        for channel in range(self.channels):
            a, b, c, d = random.random(4) * 12
            picture[:, :, channel] = 0.5 + 0.2 * np.sin(a + b * y)[:, None] * np.cos(c + d * x)
        top, left = random.integers(0, rows), random.integers(0, columns)
        picture[top : top + rows // 3 + 1, left : left + columns // 3 + 1] += np.float32(0.2)
        picture += random.random(picture.shape, np.float32) * np.float32(0.1) - np.float32(0.05)
        values = np.resize(picture.clip(0, 1), (rows, tensor.columns))
        return np.rint(255 * values) if tensor.type.is_integer else values


class Graph(_Distribution):
    """A graph, or the places of a sparse matrix: in the first two tensors, either as `csr` (where each vertex's edges
    begin, and their ends) or as `edges` (their beginnings, and their ends). Further tensors get `values`. There are
    exactly as many edges as the second tensor has values; some may be there twice. `power_law`: few vertices have most
    edges, vertex 0 the most. `grid`: up, down, left and right in the squarest grid. `banded`: ends at most `band`
    vertices away."""

    kind: Literal["graph"]
    pattern: Literal["uniform", "power_law", "grid", "banded"] = "uniform"
    form: Literal["csr", "edges"] = "csr"
    vertices: str = ""
    """The dimension that is the number of vertices, needed for `edges`; else it follows from the first tensor."""
    ends: str = ""
    """The dimension that is the number of columns, if the matrix is not square."""
    band: Annotated[int, Field(ge=1)] = 8
    values: Uniform | Constant | Normal | Integers = Field(Uniform(low=-1, high=1), discriminator="kind")

    def __str__(self) -> str:
        return super().__str__().replace("power_law", "power_law from 0")  # not what was once drawn by the other name

    def of_unit(self, operator: Operator, shape: Shape, random: np.random.Generator) -> tuple[Array, ...]:
        numbers = dict(zip(operator.dimension_names, shape, strict=True))
        first, second, *others = operator.inputs(shape)
        count = _number(self.vertices, numbers) if self.vertices else first.size - 1
        columns = _number(self.ends, numbers) if self.ends else count
        begins, ends = self._edges(count, columns, second.size, random)
        edges = begins * columns + ends  # one number for each edge: numpy sorts them many times faster than pairs
        edges.sort()
        begins, ends = np.divmod(edges, columns)
        if self.form == "csr":
            begins = np.searchsorted(edges, np.arange(count + 1) * columns)
        return begins, ends, *(self.values.of_tensor(tensor, numbers, random) for tensor in others)

    def _edges(self, count: int, columns: int, edges: int, random: np.random.Generator) -> tuple[Array, Array]:
        if self.pattern == "grid":
            width = math.isqrt(count)
            here = np.arange(count)
            pairs = [(here[at], (here + step)[at]) for step, at in (
                (1, here % width < width - 1), (-1, here % width > 0), (width, here >= 0), (-width, here >= 0)
            )]  # fmt: skip
            begins, ends = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
            inside = (ends >= 0) & (ends < count)
            chosen = np.resize(random.permutation(int(inside.sum())), edges)
            return begins[inside][chosen], ends[inside][chosen]
        if self.pattern == "power_law":
            names = np.append(0, 1 + random.permutation(count - 1))
            begins = names[_log_uniform(count, edges, random)]
        else:
            begins = random.integers(0, count, edges)
        if self.pattern == "banded":
            return begins, np.clip(begins + random.integers(-self.band, self.band + 1, edges), 0, columns - 1)
        return begins, random.integers(0, columns, edges)


class Own(_Distribution):
    """What the function `name` among the operator's `generators` returns."""

    kind: Literal["own"]
    name: str

    def of_unit(self, operator: Operator, shape: Shape, random: np.random.Generator) -> tuple[Array, ...]:
        generators = operator.generators()
        if self.name not in generators:
            raise UsageError(
                f"{operator.name} has no generator {self.name!r}; it has {', '.join(generators) or 'none'}."
            )
        made = tuple(np.asarray(each) for each in generators[self.name](shape, random))
        if [each.size for each in made] != [tensor.size for tensor in operator.inputs(shape)]:
            wanted = ", ".join(
                f"{tensor.rows} x {tensor.columns} of {tensor.name}" for tensor in operator.inputs(shape)
            )
            raise UsageError(
                f"The generator {self.name!r} of {operator.name} must return arrays with {wanted} values; it returned "
                f"{', '.join(str(each.shape) for each in made) or 'none'}."
            )
        return made


class Each(_Distribution):
    """A distribution for each input tensor, by its name."""

    kind: Literal["each"]
    tensors: dict[str, Annotated[
        Uniform | Constant | Normal | Integers | Permutation | Image, Field(discriminator="kind")
    ]]  # fmt: skip

    def of_unit(self, operator: Operator, shape: Shape, random: np.random.Generator) -> tuple[Array, ...]:
        numbers = dict(zip(operator.dimension_names, shape, strict=True))
        names = [tensor.name for tensor in operator.inputs(shape)]
        if set(names) != set(self.tensors):
            raise UsageError(f"each: expected the tensors {', '.join(names)}, found {', '.join(self.tensors)}.")
        return tuple(self.tensors[tensor.name].of_tensor(tensor, numbers, random) for tensor in operator.inputs(shape))


def _number(name: int | str, numbers: Mapping[str, int | float]) -> int:
    if isinstance(name, int):
        return name
    if name not in numbers:
        raise UsageError(f"There is no dimension {name!r}: expected a number, or one of {', '.join(numbers)}.")
    return int(numbers[name])


def _log_uniform(below: int, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Integers from 0 whose frequency is about 1 / (number + 1)."""
    return np.minimum(np.exp(random.random(count) * math.log(below + 1)).astype(np.int64), below) - 1


Distribution = Uniform | Constant | Normal | Integers | Permutation | Image | Graph | Own | Each
