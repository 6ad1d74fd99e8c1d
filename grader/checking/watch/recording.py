"""Reads a recording of values (emulator/runtime/values.c): a graph in which each node is a value that a thread
computed, with the line, the operation and the operands. The program that was recorded could have written the file, so
every number in it is checked, and a file that no recorder writes is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from cudaemu.operations import OPERATIONS
from grader.findings import Place

MAGIC = 0x48435457
CONSTANT, LEAF = 0xFFFFFFFF, 0xFFFFFFFE
MOST_BYTES = 256 << 20
_HEAD, _SITE = 8, 3
_ROW = np.dtype([("site", "<u4"), ("a", "<u4"), ("b", "<u4"), ("c", "<u4"), ("value", "<f4"), ("thread", "<u4")])


class Malformed(Exception):
    """No recorder wrote this file."""


@dataclass(frozen=True)
class Watched:
    """A value of an output: its tensor, (unit, row, column), its place in the file in words, and its bits. A right one
    is a control: what seems odd about it is no mistake."""

    tensor: str
    index: tuple[int, int, int]
    word: int
    bits: int
    right: bool = False


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
    cut_off: bool

    def operation(self, node: int) -> str:
        """The operation of a node; '' of a leaf or a constant."""
        site = int(self.site[node])
        return OPERATIONS[self.sites[site, 0]] if site < LEAF else ""

    def operands(self, node: int) -> list[int]:
        """The nodes from which a node is computed."""
        return [int(of[node]) for of in (self.a, self.b, self.c) if of[node]] if self.site[node] < LEAF else []

    def place(self, node: int) -> Place | None:
        """The line of a node; of a leaf or a constant there is none."""
        if self.site[node] >= LEAF:
            return None
        _, file, line = self.sites[self.site[node]].tolist()
        name = self.files.get(file)
        return Place(file=name, line=line) if name and line else None


def read_recording(file: IO[bytes]) -> Recording:
    """Raises Malformed."""
    data = file.read(MOST_BYTES)
    if len(data) < 4 * _HEAD:
        raise Malformed("it is empty")
    magic, _, _, cut_off, root_count, site_count, kept, _ = np.frombuffer(data, "<u4", _HEAD).tolist()
    first_site = 4 * (_HEAD + root_count)
    first_node = first_site + 4 * _SITE * site_count
    end = first_node + _ROW.itemsize * kept
    if magic != MAGIC or root_count > 64 or len(data) < end:
        raise Malformed("its head is not a recorder's")
    roots = np.frombuffer(data, "<u4", root_count, 4 * _HEAD)
    sites = np.frombuffer(data, "<u4", _SITE * site_count, first_site).reshape(-1, _SITE)
    nodes = np.zeros(kept + 1, _ROW)
    nodes[0]["site"], nodes[1:] = CONSTANT, np.frombuffer(data, _ROW, kept, first_node)
    inner = nodes["site"] < LEAF
    if np.any(nodes["site"][inner] >= site_count):
        raise Malformed("a node has no site")
    if np.any(roots > kept) or np.any(sites[:, 0] >= len(OPERATIONS)):
        raise Malformed("a root is no node, or a site does nothing known")
    a, b, c = (nodes[name].astype(np.int64) for name in "abc")
    if np.any(inner & (np.maximum(np.maximum(a, b), c) >= np.arange(kept + 1))):
        raise Malformed("a node comes from a later one")
    names = (line.partition(" ") for line in data[end:].decode(errors="replace").splitlines())
    files = {int(number): name for number, _, name in names if number.isdecimal() and len(number) < 12}
    return Recording(tuple(roots.tolist()), sites, files, nodes["site"], a, b, c, nodes["value"], bool(cut_off))
