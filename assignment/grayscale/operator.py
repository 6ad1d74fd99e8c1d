"""A picture in shades of grey: header height, width; input P (height, 3 width) of R G B bytes; output G (height, width).

A pixel is (77 R + 150 G + 29 B + 128) / 256, rounded down: the weights of ITU-R BT.601 in 256ths.
"""

import numpy as np

from grader.operators.base import Alternate, Tensor, WholeOperator, size_of
from grader.operators.number_types import U8


def _grey(shape, tensors, rows=slice(None), weights=(77, 150, 29), half=128):
    pixels = tensors[0].reshape(shape[0], shape[1], 3)[rows].astype(np.int32)
    return (pixels @ np.array(weights) + half) // 256


class Grayscale(WholeOperator):
    name = "grayscale"
    dimensions = (size_of("height", 1 << 15), size_of("width", 1 << 15))

    def inputs(self, shape):
        return (Tensor("P", shape[0], 3 * shape[1], type=U8),)

    def outputs(self, shape):
        return (Tensor("G", shape[0], shape[1], type=U8),)

    def flops(self, shape):
        return 6 * shape[0] * shape[1]

    def oracle(self, shape, tensors, rows=slice(None)):
        return (_grey(shape, tensors, rows),)

    def alternates(self):
        return (
            Alternate(
                "b_g_r",
                "It matches blue, green, red: red is the first byte of a pixel.",
                lambda shape, tensors, rows: _grey(shape, tensors, rows, (29, 150, 77)),
            ),
            Alternate(
                "not_rounded",
                "It matches (77 R + 150 G + 29 B) / 256: 128 is missing, so values are rounded down.",
                lambda shape, tensors, rows: _grey(shape, tensors, rows, half=0),
            ),
        )


OPERATOR = Grayscale()
