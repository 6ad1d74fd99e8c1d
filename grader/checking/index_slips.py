"""Finds slips in the indices of threads: guards and axes that do not fit, rows and columns of a block exchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grader.checking.host_text import WORDS
from grader.checking.source_lines import WORD, Line, assigned_value, assignment
from grader.checking.suspects import Slip, Suspects
from grader.operators.base import Step

_GUARD = re.compile(r"\bif\s*\(\s*(\w+)\s*>=\s*(\w+)\s*\)")
_AXES = re.compile(r"\bblockIdx\s*\.\s*([xyz])\s*\*\s*blockDim\s*\.\s*([xyz])\s*\+\s*threadIdx\s*\.\s*([xyz])\b")
_THREAD = re.compile(r"\b(\w+)\s*=\s*threadIdx\s*\.\s*([xyz])\s*[,;]")
_ELEMENT = re.compile(r"\b([A-Za-z_]\w*)\s*\[\s*(\w+)\s*\]")


_LOADS: tuple[Step, ...] = ("load_q", "load_k", "load_v")


class IndexSlips(Suspects):
    """Finds slips in the indices of threads."""

    def _narrow_guards(self) -> Iterator[Slip]:
        """Guards `if (i >= n) return;` before `i / n`, which can only be 0 after them."""
        for line in self.matching(_GUARD):
            found = _GUARD.search(line.code)
            assert found is not None
            index, end = found.groups()
            _, last = self.extent(line)
            here = [each for each in self.lines if each.file == line.file and line.number <= each.number <= last]
            leaves = any("return" in each.code for each in here[:2])
            if leaves and any(re.search(rf"\b{index}\s*/\s*{end}\b", each.code) for each in here):
                yield Slip(
                    f"Threads with `{index}` ≥ `{end}` return here, so `{index} / {end}` is always 0: compare "
                    f"`{index}` with the number of threads that have work.",
                    line,
                )

    def _mixed_axes(self) -> Iterator[Slip]:
        """Global indices such as `blockIdx.y * blockDim.y + threadIdx.x`."""
        for line in self.matching(_AXES):
            found = _AXES.search(line.code)
            assert found is not None
            if len(set(found.groups())) > 1:
                one, other, thread = found.groups()
                yield Slip(
                    f"This number mixes blockIdx.{one}, blockDim.{other} and threadIdx.{thread}, which must all be "
                    "of one axis.",
                    line,
                )

    def _exchanged_indices(self) -> Iterator[Slip]:
        """Arrays with a value for each row of a block that are used at the thread's other index."""
        threads = {name for line in self.lines for name, _ in _THREAD.findall(line.code)}
        rows = {name for line in self.matching(WORDS["row"]) for name in threads & set(WORD.findall(line.code))}
        if len(threads) < 2 or len(rows) != 1:
            return
        loads = [line for step in _LOADS for line in self._loads(step)]
        tiles = {said[1] for line in loads if (said := assignment(line))}
        yield from self._read_elsewhere(threads, rows.pop(), tiles)
        for line in loads:
            yield from self._filled_elsewhere(threads, line)
        for line in self._lines_of("scores"):
            used = [at for array, at in _ELEMENT.findall(assigned_value(line)) if array in tiles and at in threads]
            if len(used) == 2 and used[0] == used[1]:
                yield Slip(
                    f"Both factors of the score are taken from row [{used[0]}] of their tiles: one index must be the "
                    "query's, the other the key's.",
                    line,
                )

    def _read_elsewhere(self, threads: set[str], row: str, tiles: set[str]) -> Iterator[Slip]:
        """Arrays other than `tiles` that are written at one thread index and read at another; `row` is the row's."""
        written: dict[str, list[tuple[str, Line]]] = {}
        for line in self.statements:
            said = assignment(line)
            if said and said[2] and (at := _ELEMENT.search(said[0])) and at[1] not in tiles:
                written.setdefault(at[1], []).append((at[2], line))
        for line in self.statements:
            for array, index in _ELEMENT.findall(assigned_value(line)):
                stores = written.get(array, [])
                places = {place for place, _ in stores}
                if len(places) == 1 and places | {index} <= threads and index not in places:
                    yield Slip(
                        f"`{array}` is written at [{stores[0][0]}] and read at [{index}]: the thread's row is {row}, "
                        f"so use [{row}].",
                        line if index != row else stores[-1][1],
                    )

    def _filled_elsewhere(self, threads: set[str], load: Line) -> Iterator[Slip]:
        """Find variables that are computed from one thread index and used by `load` to fill an array at the other
        thread index."""
        said = assignment(load)
        at = _ELEMENT.search(said[0]) if said else None
        if at is None or at[2] not in threads:
            return
        words = set(WORD.findall(assigned_value(load)))
        for line in self.statements:
            sets = assignment(line)
            if sets is None or sets[2] or sets[3] != "=" or sets[1] not in words - {at[2]}:
                continue
            used = threads & set(WORD.findall(sets[4]))
            if used and at[2] not in used | words:
                yield Slip(
                    f"`{at[1]}` is filled at [{at[2]}] from `{sets[1]}`, which depends on {min(used)}: use one index "
                    "in both.",
                    line,
                )
