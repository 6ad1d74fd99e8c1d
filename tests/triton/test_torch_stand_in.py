"""What host code around Triton kernels uses of PyTorch: views and copies are recorded, what needs values is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

from grader.plans import recorder
from grader.plans.handles import Tensor
from grader.plans.modules import torch
from grader.plans.plan import Constant, Copy, Fill


@pytest.fixture(autouse=True)
def recorded() -> recorder.Recorder:
    made = recorder.Recorder()
    recorder.use(made)
    return made


def test_views_have_pytorchs_shapes_and_strides() -> None:
    x = torch.empty(2, 3, 4, device="cuda", dtype=torch.float16)
    for view, shape, stride, offset in (
        (x.transpose(0, 2), (4, 3, 2), (1, 4, 12), 0),
        (x.permute(2, 0, 1), (4, 2, 3), (1, 12, 4), 0),
        (x.T, (4, 3, 2), (1, 4, 12), 0),
        (x[1, :, 1::2], (3, 2), (4, 2), 13),
        (x[..., -1], (2, 3), (12, 4), 3),
        (x.view(-1, 4), (6, 4), (4, 1), 0),
        (x.flatten(0, 1), (6, 4), (4, 1), 0),
        (x[:, None], (2, 1, 3, 4), (12, 0, 4, 1), 0),
        (x.view(torch.uint8), (2, 3, 8), (24, 8, 1), 0),
        (x.split(2, 1)[1], (2, 1, 4), (12, 4, 1), 8),
        (x.unbind(1)[2], (2, 4), (12, 1), 8),
        (x[0].expand(5, 3, 4), (5, 3, 4), (0, 4, 1), 0),
    ):
        steps = [(length, step) for length, step in zip(view.shape, view.stride(), strict=True) if length > 1]
        wanted = [(length, step) for length, step in zip(shape, stride, strict=True) if length > 1]
        assert (view.shape, steps, view.storage_offset()) == (shape, wanted, offset)


def test_a_view_that_would_need_a_copy_is_refused() -> None:
    with pytest.raises(ValueError, match="use reshape, which copies"):
        torch.empty(3, 4).T.view(12)


def test_empty_like_keeps_the_order_of_dimensions_as_pytorch_does() -> None:
    packed = torch.empty(2, 5, 3, 4, 8)[:, :, 0].transpose(1, 2)  # [B, H, N, d] of [B, N, 3, H, d]
    assert packed.stride() == (480, 8, 96, 1)
    assert torch.empty_like(packed).stride() == (160, 8, 32, 1)
    assert torch.empty_like(torch.empty(3, 4).T).stride() == (1, 4)


def test_tensors_are_made_by_fills_copies_and_constants(recorded: recorder.Recorder) -> None:
    x = torch.full((2, 3), 1.5, dtype=torch.bfloat16)
    torch.empty_like(x).copy_(x)
    torch.from_numpy(np.arange(4, dtype=np.int32))
    fill, copy, constant = recorded.plan(0).steps
    assert isinstance(fill, Fill) and fill.pattern == "c03f" and fill.count == 6
    assert isinstance(copy, Copy) and copy.bytes == 12
    assert isinstance(constant, Constant)


def test_types_and_devices_are_pytorchs() -> None:
    x = torch.zeros((2,), dtype=torch.half, device=torch.device("cuda:0"))
    assert x.is_cuda and x.dtype == torch.float16 and str(x.dtype) == "torch.float16" and x.device.type == "cuda"
    assert torch.ones(3).dtype == torch.float32 and torch.full((1,), 7).dtype == torch.int64
    assert x.to("cuda") is x and isinstance(x, torch.Tensor)
    assert torch.cuda.current_device() == 0 and torch.tensor([1, 2]).dtype == torch.int64


VALUES: dict[str, Callable[[Tensor], Any]] = {
    "item()": lambda x: x[0].item(),
    "tolist()": lambda x: x.tolist(),
    "cpu()": lambda x: x.cpu(),
    "float()": lambda x: float(x[0]),
    "int()": lambda x: int(x[0]),
    "an index": lambda x: [1, 2][x[0]],
    "host code never sees values of a tensor": lambda x: x.numpy(),
    "a condition": lambda x: 1 if x[0] else 2,
    "array of numpy": lambda x: np.asarray(x),
    "`+`": lambda x: x + 1,
    "`-`": lambda x: 1 - x,
    "`*`": lambda x: x * x,
    "`@`": lambda x: x @ x,
    "`>`": lambda x: x > 0,
    "`==`": lambda x: x == 0,
    "`sum`": lambda x: x.sum(),
    "torch.exp": lambda x: torch.exp(x),
    "torch.cuda.Stream": lambda x: torch.cuda.Stream(),
    "'cpu'": lambda x: torch.empty(3, device="cpu"),
}


@pytest.mark.parametrize("named", VALUES)
def test_what_needs_values_is_refused_with_what_to_do(named: str) -> None:
    with pytest.raises(recorder.NoValues) as refused:
        VALUES[named](torch.zeros(4))
    text = str(refused.value)
    assert named in text and any(word in text for word in ("kernel", "numpy", "do_bench"))


def test_hasattr_is_false_for_names_that_are_not_there() -> None:
    assert hasattr(torch, "float8_e5m2") and not hasattr(torch, "exp") and not hasattr(torch.zeros(1), "sum")


def test_a_function_of_autograd_gives_gradients_to_its_arguments() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
            ctx.save_for_backward(x)
            ctx.factor = factor
            return torch.empty_like(x)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            assert ctx.factor == 2.0 and dy.shape == x.shape
            return torch.empty_like(x), None

    x = torch.zeros(4).requires_grad_()
    y = Twice.apply(x, 2.0)
    y.backward(torch.ones_like(y))
    assert x.grad.shape == x.shape


def test_no_grad_decorates_and_manages_a_context() -> None:
    @torch.no_grad()
    def one() -> int:
        return 1

    @torch.no_grad
    def two() -> int:
        return 2

    with torch.inference_mode():
        assert (one(), two()) == (1, 2)
