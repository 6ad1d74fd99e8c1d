"""From a probe and its output to findings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from grader.checking.probes.weights import SURE, made, read_weights
from grader.findings import Finding, rank
from grader.operators import Operator
from grader.operators.probes import Outputs, Probe, Weights
from grader.sandbox.quarantine import open_output


def examine(shown: Iterable[list[Finding]]) -> tuple[Finding, ...]:
    """What the probes have shown, one after the other, up to the first that is sure."""
    found: list[Finding] = []
    for each in shown:
        found += each
        if sure := [one for one in each if one.certainty >= SURE]:
            return rank([sure])
    return rank([found])


def write_probe(operator: Operator, probe: Probe, path: Path) -> None:
    """Write the probe's input file."""
    with path.open("w+b") as file:
        file.write(operator.encode_header(probe.shape))
        file.truncate(operator.input_bytes(probe.shape))
        file.flush()
        for unit, tensors in enumerate(probe.units):
            operator.write_unit(file.fileno(), probe.shape, unit, tensors)


def read_probe(operator: Operator, probe: Probe, output: Path) -> list[Finding]:
    """What the output of a run on this probe shows; empty if it is right, cut short, or says nothing."""
    outputs, roundoff = outputs_of(operator, probe, output)
    if not outputs:
        return []
    found: list[Finding] = []
    for reading in probe.readings:
        if isinstance(reading, Weights):
            one = read_weights(reading, reading.of(outputs), roundoff)
            found += [one] if one is not None else []
        elif reading.size / 5 < max(float(np.abs(values).max()) for values in outputs[reading.output]) < np.inf:
            found.append(made(reading.kind, SURE, array=reading.array))
    return found


def outputs_of(operator: Operator, probe: Probe, output: Path) -> tuple[Outputs, float]:
    """(the values of each output tensor in each unit, their roundoff); empty if there is no whole output."""
    layouts, units = operator.output_layouts(probe.shape), range(len(probe.units))
    try:
        with os.fdopen(open_output(output), "rb", buffering=0) as file:
            found = [[layout.read(file.fileno(), unit) for unit in units] for layout in layouts]
    except OSError:
        found = [[]]
    outputs = [[values for values in tensor if values is not None] for tensor in found]
    whole = all(len(tensor) == len(units) for tensor in outputs)
    return outputs if whole else [], max(layout.type.roundoff for layout in layouts)
