"""Functions with a forward and a backward pass, as wrappers of attention define them."""

from __future__ import annotations

from typing import Any

from grader.plans.handles import Tensor


class FunctionCtx:
    """What the forward pass keeps for the backward pass."""

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """No gradient is computed unless `backward` is called."""


class Function:
    """A subclass has the static methods `forward(ctx, ...)` and `backward(ctx, gradient)`. `backward` of a tensor that
    `apply` returned calls the latter and sets `grad` of the arguments; there is no graph of several functions."""

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        context = FunctionCtx()
        context.needs_input_grad = tuple(isinstance(each, Tensor) for each in arguments)
        made = cls.forward(context, *arguments)  # type: ignore[attr-defined]
        for each in made if isinstance(made, tuple) else (made,):
            if isinstance(each, Tensor):
                each.made_by = (cls, context, arguments)
        return made
