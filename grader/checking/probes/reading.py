"""From a probe and its output to findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from grader.checking.probes.weights import SURE, made, read_weights, spans
from grader.findings import Finding, rank
from grader.operators import Operator
from grader.operators.probes import Copies, Origins, Outputs, Probe, Vanishes, Weights
from grader.sandbox.quarantine import open_output


def examine(probes: Sequence[Probe], show: Callable[[Probe], list[Finding]]) -> tuple[Finding, ...]:
    """What the probes show, one after the other, up to the first that is sure. `show` runs the program on one."""
    found: list[Finding] = []
    for probe in probes:
        found += show(probe)
        if sure := [each for each in found if each.certainty >= SURE]:
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
        match reading:
            case Weights():
                found += read_weights(reading, reading.of(outputs), roundoff)
            case Origins():
                found += _origin(reading, outputs)
            case Vanishes():
                size = float(max(np.abs(values).max() for values in outputs[reading.output]))
                if np.isfinite(size) and size > 0.2 * reading.size:
                    found.append(made(reading.kind, SURE, array=reading.array))
            case Copies():
                found += _copies(reading, outputs)
    mixed = [each.words for each in found if each.kind == "other_unit_read"]
    if len(mixed) > 1 and all(words == mixed[0] for words in mixed):
        return []  # a whole result is in the place of another, which is seen without an experiment
    return found


def outputs_of(operator: Operator, probe: Probe, output: Path) -> tuple[Outputs, float]:
    """(the values of each output tensor in each unit, their roundoff); empty if there is no whole output."""
    try:
        descriptor = open_output(output)
    except OSError:
        return [], 0.0
    layouts = operator.output_layouts(probe.shape)
    try:
        found = [[layout.read(descriptor, unit) for unit in range(len(probe.units))] for layout in layouts]
    except OSError:
        return [], 0.0
    finally:
        os.close(descriptor)
    if any(values is None for tensor in found for values in tensor):
        return [], 0.0
    outputs = [[values for values in tensor if values is not None] for tensor in found]
    return outputs, max(layout.type.roundoff for layout in layouts)


def _origin(reading: Origins, outputs: Outputs) -> list[Finding]:
    """The first unit whose tensor was read from another unit."""
    for unit, values in enumerate(outputs[0]):
        numbers = values[reading.rows, reading.column].astype(np.float64) - 1
        other = float(numbers[0]) if len(numbers) else float(unit)
        near = np.isfinite(numbers).all() and np.abs(numbers - np.rint(numbers)).max() < 0.05
        if near and round(other) != unit and 0 <= round(other) < len(outputs[0]):
            return [
                made(
                    "other_unit_read", SURE, array=reading.array,
                    label=reading.label(unit), other_unit=reading.label(round(other)),
                )
            ]  # fmt: skip
    return []


def _copies(reading: Copies, outputs: Outputs) -> list[Finding]:
    found, values, source = outputs[0][0].astype(np.float64), reading.values, reading.source
    if not np.isfinite(found).all() or np.allclose(found, values[source], atol=1e-3):
        return []
    missing = np.flatnonzero(np.abs(found).max(axis=1) == 0)
    if 0 < len(missing) < len(found):
        terms = np.sort(source[missing])
        return [made("terms_missing", SURE, array=reading.array, count=len(terms), over="terms", numbers=spans(terms))]
    inverse = np.argsort(source)
    if np.allclose(found, values[inverse], atol=1e-3):
        return [made("transposed", SURE, array=reading.by)]
    if np.allclose(found, values.reshape(values.shape[::-1]).T[source], atol=1e-3):
        return [made("transposed", SURE, array=reading.of)]
    return []
