"""The layout of a function's frame, the memory for registers that its forms share.

The first word holds `local_base`, the second (FORMALS) the address of the function's arguments and results. Arguments
and results of the function's calls follow. Every register that is live across blocks has a place large enough for its
general shape, where the slow form reads it. In threaded forms all registers are in the frame: a register with the same
shape as in the general form uses that place, a register with a more regular shape has a second place, and registers
used in a single block reuse each other's places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cudaemu.analysis.shapes import Kind, Shape, Values
from cudaemu.analysis.ssa import Ssa
from cudaemu.ptx import Variable
from cudaemu.translate.types import FORMS

ROW_BYTES = 128  # 32 lanes of 32 bits
SCALAR_BYTES = 16  # a base and a stride
_HEADER_BYTES = 64
FORMALS = 8  # offset in the frame


class Frame:
    """The place of each web. `stored_type` returns the type in which a register is stored; `arguments` are the .param
    variables of calls."""

    def __init__(
        self, ssa: Ssa, general: Values, stored_type: Callable[[str], str], arguments: Iterable[Variable]
    ) -> None:
        self.ssa, self.general, self.stored_type = ssa, general, stored_type
        self.size = _HEADER_BYTES
        self.arguments: dict[str, int] = {}
        for variable in arguments:
            self.arguments[variable.name] = self.size
            self.size += max(1, -(-variable.size // 4)) * ROW_BYTES
        crossing = [web for web in range(len(general.register)) if not general.local[web]]
        self.places = self._place(general, crossing)

    def bytes_of(self, web: int, shape: Shape) -> int:
        stored = self.stored_type(self.general.register[web])
        if stored == "pred" or shape.kind is not Kind.VECTOR:
            return SCALAR_BYTES
        return ROW_BYTES * (2 if FORMS[stored].wide else 1)

    def _place(self, values: Values, webs: list[int]) -> dict[int, int]:
        """Give each web a place, scalars first, so that rows stay aligned to vectors without gaps between them."""
        places: dict[int, int] = {}
        for web in sorted(webs, key=lambda web: (self.bytes_of(web, values.shape[web]) > SCALAR_BYTES, web)):
            size = self.bytes_of(web, values.shape[web])
            if size > SCALAR_BYTES:
                self.size = -(-self.size // 64) * 64
            places[web] = self.size
            self.size += size
        self.size = -(-self.size // 64) * 64
        return places

    def threaded(self, values: Values) -> dict[int, int]:
        """Places of all webs of a threaded form."""
        general = self.general
        own = [w for w in range(len(values.register)) if not values.local[w] and values.shape[w] != general.shape[w]]
        places = {w: p for w, p in self.places.items() if values.shape[w] == general.shape[w]}
        places |= self._place(values, own)
        turns = self._turns(values)
        counts: dict[int, int] = {}
        for size, index in turns.values():
            counts[size] = max(counts.get(size, 0), index + 1)
        begin: dict[int, int] = {}
        for size in sorted(counts):
            begin[size] = self.size
            self.size += -(-size * counts[size] // 64) * 64
        return places | {web: begin[size] + size * index for web, (size, index) in turns.items()}

    def _turns(self, values: Values) -> dict[int, tuple[int, int]]:
        """For each web used in a single block, the size and index of a place that no other web uses at the same time."""
        turns: dict[int, tuple[int, int]] = {}
        for block in self.ssa.graph.blocks:
            last: dict[int, int] = {}
            touched: list[list[int]] = []
            for at, (instr, names, results) in enumerate(self.ssa.effects[block.number]):
                webs = [values.of_read(instr, name) for name in names]
                webs += [values.of_write(instr, name) for name in results]
                webs = [web for web in dict.fromkeys(webs) if values.local[web]]
                touched.append(webs)
                last.update(dict.fromkeys(webs, at))
            for web in values.web_at_end[block.number].values():
                last[web] = len(block.instrs)
            free: dict[int, list[int]] = {}
            used: dict[int, int] = {}
            for at, webs in enumerate(touched):
                for web in webs:
                    if web in turns:
                        continue
                    size = self.bytes_of(web, values.shape[web])
                    if free.get(size):
                        index = free[size].pop()
                    else:
                        index = used[size] = used.get(size, -1) + 1
                    turns[web] = (size, index)
                for web in webs:  # places are freed last, because a result must not take the place of an operand
                    if last[web] == at:
                        size, index = turns[web]
                        free.setdefault(size, []).append(index)
            for web in values.web_at_end[block.number].values():  # read only by the branch
                if values.local[web] and web not in turns:
                    size = self.bytes_of(web, values.shape[web])
                    turns[web] = (size, used.get(size, -1) + 1)
        return turns
