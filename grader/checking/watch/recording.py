"""Reads a recording of values (emulator/runtime/values.c): a graph in which each node is a value that a thread
computed, with the line, the operation and the operands. The program that was recorded could have written the file, so
every number in it is checked, and a file that no recorder writes is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cudaemu.operations import OPERATIONS

MAGIC = 0x48435457
CONSTANT, LEAF = 0xFFFFFFFF, 0xFFFFFFFE
MOST_BYTES = 256 << 20
_HEAD, _SITE = 8, 3
_ROW = np.dtype([("site", "<u4"), ("a", "<u4"), ("b", "<u4"), ("c", "<u4"), ("value", "<f4"), ("thread", "<u4")])


class Malformed(Exception):
    """No recorder wrote this file."""


@dataclass(frozen=True)
class Recording:
    """`roots`: the node of each watched value, 0 where it is unknown. `sites`: (operation, file, line) of each
    instruction. Nodes are numbered from 1; `a`, `b` and `c` are their operands, always with smaller numbers, 0 where
    there is none. Of a leaf they are its address and the site that loaded it."""

    roots: tuple[int, ...]
    sites: NDArray[np.uint32]
    files: dict[int, str]
    site: NDArray[np.uint32]
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    c: NDArray[np.int64]
    value: NDArray[np.float32]
    thread: NDArray[np.uint32]
    cut_off: bool


def read_recording(file: IO[bytes]) -> Recording:
    """Raises Malformed."""
    data = file.read(MOST_BYTES)
    if len(data) < 4 * _HEAD:
        raise Malformed("it is empty")
    head = np.frombuffer(data, "<u4", _HEAD)
    magic, _, _, cut_off, root_count, site_count, kept, _ = (int(n) for n in head)
    at = 4 * _HEAD
    end_of_sites = at + 4 * root_count + 4 * _SITE * site_count
    end = end_of_sites + _ROW.itemsize * kept
    if magic != MAGIC or root_count > 64 or len(data) < end:
        raise Malformed("its head is not a recorder's")
    roots = np.frombuffer(data, "<u4", root_count, at)
    sites = np.frombuffer(data, "<u4", _SITE * site_count, at + 4 * root_count).reshape(-1, _SITE)
    rows = np.frombuffer(data, _ROW, kept, end_of_sites)
    leaf = rows["site"] >= LEAF
    if kept and np.any(rows["site"][~leaf] >= site_count):
        raise Malformed("a node has no site")
    if np.any(roots > kept) or np.any(sites[:, 0] >= len(OPERATIONS)):
        raise Malformed("a root is no node, or a site does nothing known")
    own = np.arange(1, kept + 1)

    def operand(name: str) -> NDArray[np.int64]:
        values = rows[name].astype(np.int64)
        if np.any((values >= own) & ~leaf):
            raise Malformed("a node comes from a later one")
        return np.concatenate([np.zeros(1, np.int64), values])

    def with_none(values: NDArray[Any], none: int) -> NDArray[Any]:
        return np.concatenate([np.array([none], values.dtype), values])

    files = {}
    for line in data[end:].decode(errors="replace").splitlines():
        number, _, name = line.partition(" ")
        if number.isdigit() and len(number) < 12:
            files[int(number)] = name
    return Recording(
        tuple(roots.tolist()), sites, files, with_none(rows["site"], CONSTANT),
        operand("a"), operand("b"), operand("c"),
        with_none(rows["value"], 0), with_none(rows["thread"], 0), bool(cut_off),
    )  # fmt: skip
