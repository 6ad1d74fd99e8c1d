"""What PyTorch's tensors have beyond views: facts about the one device, copies, and what would need values.

`Names` is the base of `handles.Tensor`. What reads or computes values ends in NoValues while a plan is recorded, with a
sentence on what to use instead. Under `grader run`, what reads values gives them; what computes is refused there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from grader.plans.dtypes import DTYPES, dtype_of
from grader.plans.recorder import NoValues

_IN_A_KERNEL = "host code never sees values, so compute this in a kernel"
_OPERATORS = {
    "add": "+", "radd": "+", "sub": "-", "rsub": "-", "matmul": "@", "rmatmul": "@", "truediv": "/", "rtruediv": "/",
    "floordiv": "//", "mod": "%", "pow": "**", "neg": "-", "abs": "abs()", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "and": "&", "or": "|", "xor": "^", "invert": "~", "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=",
}  # fmt: skip
_CASTS = {
    "half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16", "int": "int32", "long": "int64",
}  # fmt: skip


class NoSuchName(NoValues, AttributeError):
    """PyTorch has this name, and submissions do not. `hasattr` is false for it."""


@dataclass(frozen=True)
class Device:
    """`torch.device`: "cuda", "cuda:0", or "cuda" and a number. There is one device, and no tensor in host memory."""

    type: str = "cuda"
    index: int | None = None

    def __post_init__(self) -> None:
        name, _, number = self.type.partition(":")
        object.__setattr__(self, "type", name)
        if number.isdecimal():
            object.__setattr__(self, "index", int(number))
        if name != "cuda":
            raise NoValues(f"there are no tensors on the device {name!r}: use numpy for tables that the host computes")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


def checked_device(named: Any) -> None:
    """Raises NoValues if `named`, an option of a function of PyTorch, is a device without tensors."""
    if isinstance(named, str):
        Device(named)


class Names:
    is_cuda, is_cpu, requires_grad = True, False, False
    device = Device("cuda", 0)
    grad: Any = None
    made_by: tuple[Any, Any, Sequence[Any]] | None = None
    """(class, context, arguments) of the torch.autograd.Function that made this tensor."""

    # ---- facts and views ------------------------------------------------------------------------------------------

    @property
    def T(self: Any) -> Any:
        return self.permute(*reversed(range(self.dim())))

    @property
    def mT(self: Any) -> Any:
        return self.transpose(-2, -1)

    def t(self) -> Any:
        return self.T

    @property
    def nbytes(self: Any) -> Any:
        return self.numel() * self.element_size()

    def is_floating_point(self: Any) -> Any:
        return self.dtype.is_floating_point

    def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
        first, last = start_dim % self.dim(), end_dim % self.dim()
        return self.reshape(*self.shape[:first], -1, *self.shape[last + 1 :])

    def select(self: Any, dim: int, index: int) -> Any:
        return self[(*[slice(None)] * (dim % self.dim()), index)]

    def narrow(self: Any, dim: int, start: int, length: int) -> Any:
        return self[(*[slice(None)] * (dim % self.dim()), slice(start, start + length))]

    def unbind(self: Any, dim: int = 0) -> Any:
        return tuple(self.select(dim, number) for number in range(self.shape[dim]))

    def split(self: Any, split_size: int | Sequence[int], dim: int = 0) -> Any:
        """Parts of one size, the last perhaps smaller, or of these sizes."""
        length = self.shape[dim]
        if isinstance(split_size, int):
            split_size = [min(split_size, length - first) for first in range(0, length, split_size)]
        firsts = [sum(split_size[:number]) for number in range(len(split_size))]
        return tuple(self.narrow(dim, first, size) for first, size in zip(firsts, split_size, strict=True))

    def chunk(self: Any, chunks: int, dim: int = 0) -> Any:
        return self.split(-(-self.shape[dim] // chunks), dim)

    # ---- copies ---------------------------------------------------------------------------------------------------

    def contiguous(self: Any) -> Any:
        return self if self.is_contiguous() else self.new_empty(self.shape).copy_(self)

    def clone(self: Any) -> Any:
        return self.new_like().copy_(self)

    def to(self: Any, *to: Any, dtype: Any = None, device: Any = None, copy: bool = False, **options: Any) -> Any:
        """This tensor, or a copy if its type is another. There is one device."""
        for each in (*to, device):
            if isinstance(each, str) and each not in DTYPES:
                checked_device(each)
            elif each is not None and not isinstance(each, Device | int):
                dtype = each.dtype if isinstance(each, Names) else each
        if not copy and (dtype is None or dtype_of(dtype) == self.dtype):
            return self
        return self.new_like(dtype).copy_(self)

    def cuda(self, *device: Any, **options: Any) -> Any:
        return self

    def __setitem__(self: Any, index: Any, value: Any) -> None:
        part = self[index]
        part.copy_(value) if isinstance(value, Names) else part.fill_(value)

    def __mul__(self: Any, factor: Any) -> Any:
        """With a number. The product is computed in float32 and rounded once."""
        if isinstance(factor, Names):
            _refusal("*")(self)
        return self.new_like().copy_(self, factor)

    __rmul__ = __mul__

    # ---- gradients ------------------------------------------------------------------------------------------------

    def detach(self) -> Any:
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        return self

    def backward(self, gradient: Any = None, retain_graph: bool = False) -> None:
        """Call `backward` of the torch.autograd.Function that made this tensor, and set `grad` of its arguments."""
        if self.made_by is None or gradient is None:
            raise NoValues(
                "backward() needs a tensor that a torch.autograd.Function made, and its gradient as argument"
            )
        function, context, arguments = self.made_by
        found = function.backward(context, gradient)
        for argument, part in zip(arguments, found if isinstance(found, tuple) else (found,), strict=False):
            if isinstance(argument, Names):
                argument.grad = part

    # ---- values ---------------------------------------------------------------------------------------------------

    def _values(self: Any, asked: str) -> Any:
        try:
            return self.numpy()
        except NoValues:
            raise NoValues(
                f"{asked} would read values, and host code never sees any: use them in a kernel, or print and compare "
                'them under `if __name__ == "__main__":`, which only `grader run` runs'
            ) from None

    def item(self) -> Any:
        return self._values("item()").item()

    def tolist(self) -> Any:
        return self._values("tolist()").tolist()

    def cpu(self) -> Any:
        """Under `grader run` this tensor: `numpy()` copies its values."""
        self._values("cpu()")
        return self

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return self._values("making an array of numpy")

    def __bool__(self) -> bool:
        return bool(self._values("a condition on a tensor"))

    def __float__(self) -> Any:
        return self._values("float()").item()

    def __int__(self) -> int:
        return int(self._values("int()"))

    def __index__(self) -> int:
        return int(self._values("a tensor as a number or an index"))

    def __eq__(self, other: object) -> Any:
        return self is other or (other is not None and _refusal("==")(self))

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        raise NoSuchName(
            f"tensors have no `{name}` here: {_IN_A_KERNEL}. They have a shape, a type, strides, views and copies"
        )


def _refusal(sign: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *others: Any) -> NoReturn:
        raise NoValues(f"`{sign}` with a tensor would compute values: {_IN_A_KERNEL}")

    return refuse


def _cast(dtype: str) -> Callable[..., Any]:
    return lambda self: self.to(dtype)


for _name, _type in _CASTS.items():
    setattr(Names, _name, _cast(_type))
for _name, _sign in _OPERATORS.items():
    setattr(Names, f"__{_name}__", _refusal(_sign))
