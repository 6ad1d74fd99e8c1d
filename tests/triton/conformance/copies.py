"""Copies between strides and types, and times a number, of up to five dimensions."""

import sys

import numpy as np
import torch

VIEWS = (
    lambda x: x.T,
    lambda x: x[::3, 1::2],
    lambda x: x[:, 5],
    lambda x: x.reshape(4, 3, 4, 4, 12)[::2, ::2, 1::2, ::2, 1::2],
    lambda x: x.T.reshape(4, 3, 4, 4, 12)[::2, 1:],
)

if __name__ == "__main__":
    values = np.arange(48 * 48, dtype=np.float32).reshape(48, 48) - 1000
    x = torch.from_numpy(values)
    for number, view in enumerate(VIEWS):
        narrow = view(x.to(torch.int16))
        for got, times in ((view(x).clone(), 1), (view(x) * 0.5, 0.5), (narrow.to(torch.float32), 1)):
            if not np.array_equal(got.numpy(), view(values) * times):
                sys.exit(f"view {number} is wrong")
    y = torch.zeros(48, 96)
    y[:, ::2] = x[5:6]
    if (y.numpy()[:, ::2] != values[5]).any() or y.numpy()[:, 1::2].any():
        sys.exit("a copy to a strided view is wrong")
    print("right")
