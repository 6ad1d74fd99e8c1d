"""Attention, forward: O_i = softmax(Q_i K_iᵀ / √d) V_i for each batch i.

The header is B N d. For each batch, the input has Q, K, V, and the output O, each (N, d). The cost counts as 4·B·N²·d
floating-point operations (two matrix products) and B·N² exponentials.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from grader.operators.attention.one_head import HEAD_DIMENSION, SEQUENCE_LENGTH, OneHead
from grader.operators.attention.passes import SAFE_SCORE
from grader.operators.base import GpuOracle, Kernel, Shape, size_of, sizes


class AttentionForward(OneHead):
    name = "attention_forward"
    dimensions = (size_of("B", 14000, least=2), SEQUENCE_LENGTH, HEAD_DIMENSION)

    def gpu_oracle(self, shape: Shape, largest: float) -> GpuOracle | None:
        _, n, d = sizes(shape)
        if largest * largest * float(np.sqrt(d)) > SAFE_SCORE:
            return None
        rows, keys = 64, 32  # the tiles of attention_forward.cu
        return GpuOracle(
            source=Path(__file__).with_name("attention_forward.cu"),
            kernels=(
                Kernel(
                    "attention_forward",
                    grid=lambda units: (n // rows, units, 1),
                    block=(128, 1, 1),
                    shared_bytes=8 * (rows * (d + 1) + keys * (d + 1) + keys * d + rows * (keys + 1)),
                ),
            ),
            defines={"D": d},
            arguments=(np.int32(n), np.float64(1.0 / np.sqrt(d))),
        )


OPERATOR = AttentionForward()
