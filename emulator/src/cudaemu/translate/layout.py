"""The data that all forms of a function share while they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from cudaemu.analysis.cfg import Block
from cudaemu.analysis.progress import Deciding
from cudaemu.analysis.waiting import Callees
from cudaemu.ptx import Function, Instr, Vec
from cudaemu.ptx.model import Loc


class Hooks(Protocol):
    """The points of a function at which counting.py writes code, through the Writer `w`."""

    def enter(self, w: Any, block: Block, mask: str = "m") -> None: ...
    def instruction(self, w: Any, block: Block, index: int) -> None: ...
    def operation(self, w: Any, instr: Instr) -> None: ...
    def parting(self, w: Any, block: Block, condition: str) -> None: ...
    def switch(self, w: Any, block: Block) -> None: ...


@dataclass
class Waits:
    """Where lanes wait for others of their warp."""

    loops: frozenset[int] = frozenset()  # headers of loops in which lanes may wait
    meetings: frozenset[int] = frozenset()  # instructions at which lanes wait for each other
    gathers: frozenset[int] = frozenset()  # meetings at which lanes may arrive separately: warp functions (gather.c)


@dataclass
class Layout:
    function: Function
    symbol: str  # stem of the function's C names
    shared: dict[str, int]  # shared variable → offset in the block's shared memory
    local: dict[str, int]  # local variable → offset in the frame's local memory
    local_bytes: int
    params: dict[str, int]  # formal parameter → byte offset (entries) or index (functions)
    callees: dict[str, str]  # PTX function → stem of its C names
    globals: dict[str, str]  # module variable or function → C expression of its address
    site: Callable[[Loc, str, int, int], int]
    warp_lanes: int  # W of runtime/vectors.h
    architecture: int  # 80 for sm_80
    prototypes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of callees: Facts.prototype
    counting: Hooks | None = None
    fast_forms: tuple[str, ...] = ("linear", "general")  # without the linear form, all code is threaded
    watched: bool = False  # for race and init: every access to memory goes through the runtime
    wrap_checks: set[int] = field(default_factory=set)  # instructions whose block begins with FormWriter._check_wrap
    callee_facts: Callees = field(default_factory=Callees)
    waits: Waits = field(default_factory=Waits)
    deciding: dict[int, Deciding] = field(default_factory=dict)  # by a loop's header: what decides whether it ends
    sums: tuple[Vec, ...] = ()  # registers to which wgmma adds products (in_flight.py)
