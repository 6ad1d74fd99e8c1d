"""Copies between strides and types, and times a number, of up to five dimensions."""

import sys

import numpy as np
import torch

VIEWS = (
    lambda x: x.T,
    lambda x: x[::3, 1::2],
    lambda x: x[:, 5],
    lambda x: x.view(2, 3, 8, 2, 24).permute(4, 2, 0, 3, 1),
    lambda x: x.view(48, 16, 3).transpose(0, 2)[1:],
    lambda x: x[:1].expand(48, 48),
)
OF_NUMPY = (
    lambda x: x.T,
    lambda x: x[::3, 1::2],
    lambda x: x[:, 5],
    lambda x: x.reshape(2, 3, 8, 2, 24).transpose(4, 2, 0, 3, 1),
    lambda x: x.reshape(48, 16, 3).swapaxes(0, 2)[1:],
    lambda x: np.broadcast_to(x[:1], (48, 48)),
)

if __name__ == "__main__":
    values = np.arange(48 * 48, dtype=np.float32).reshape(48, 48) - 1000
    x = torch.from_numpy(values)
    for number, (view, expected) in enumerate(zip(VIEWS, OF_NUMPY, strict=True)):
        narrow = view(x.to(torch.int16))
        for got, times in ((view(x).clone(), 1), (view(x) * 0.5, 0.5), (narrow.to(torch.float32), 1)):
            if not np.array_equal(got.numpy(), expected(values) * times):
                sys.exit(f"view {number} is wrong")
    y = torch.zeros(48, 96)
    y[:, ::2] = x
    if not np.array_equal(y.numpy()[:, ::2], values) or y.numpy()[:, 1::2].any():
        sys.exit("a copy to a strided view is wrong")
    print("right")
