"""The offsets of a module's variables, and the C names of its variables and functions."""

from __future__ import annotations

import re
from functools import cached_property

from cudaemu.ptx import Function, Instr, Module, Sym, Variable

SYSTEM_SHARED_BYTES = 1024
"""From sm_90 on, a block's own shared memory begins after that of the system: SHARED_START of runtime/device.h."""


def aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


class Facts:
    """The facts about a module that its parts and tables need. `prefix` keeps the C names of several modules apart."""

    def __init__(self, module: Module, prefix: str) -> None:
        self.module, self.prefix = module, prefix
        self.names = {name: f"{prefix}_f{i}" for i, name in enumerate(module.functions)}

    def prototype(self, name: str) -> tuple[int, ...]:
        """The bytes of each parameter, then of each result, of a function."""
        function = self.module.functions[name]
        return tuple(each.size for each in (*function.params, *function.returns))

    # ---- global variables and functions -------------------------------------------------------------------------

    def global_name(self, name: str) -> str:
        return f"{self.prefix}_g_" + re.sub(r"\W", lambda m: f"_{ord(m[0]):x}_", name)

    @cached_property
    def globals(self) -> list[Variable]:
        owners = [self.module.variables.values(), *(f.variables for f in self.module.functions.values())]
        return [v for variables in owners for v in variables if v.space in ("global", "const")]

    @cached_property
    def addresses(self) -> dict[str, str]:
        """C variables that hold the addresses of variables and functions."""
        functions = {name: f"{symbol}_address" for name, symbol in self.names.items()}
        return functions | {v.name: self.global_name(v.name) for v in self.globals}

    @cached_property
    def addressed(self) -> set[str]:
        """Functions whose address is taken."""
        operands = {
            o.name for f in self.module.functions.values() for i in _instrs(f) for o in i.operands if isinstance(o, Sym)
        }
        initial = {i.symbol for v in self.globals for i in v.init if i.symbol is not None}
        return (operands | initial) & self.module.functions.keys()

    # ---- shared and local memory ----------------------------------------------------------------------------------

    def reached(self, function: Function) -> list[Function]:
        """The function and all functions that it calls, directly or indirectly."""
        seen: dict[str, Function] = {function.name: function}
        work = [function]
        while work:
            for instr in _instrs(work.pop()):
                if isinstance(instr.callee, Sym):
                    callee = self.module.functions.get(instr.callee.name)
                    if callee is not None and callee.name not in seen:
                        seen[callee.name] = callee
                        work.append(callee)
        return list(seen.values())

    def shared(self, function: Function) -> tuple[dict[str, int], int]:
        """Offsets of a function's shared variables, and the end of the static ones. Module-level variables come first, at
        the same offsets for all functions of the module; each function's own variables follow; dynamic memory is last."""
        module = [v for v in self.module.variables.values() if v.space == "shared"]
        owners = self.reached(function) if function.entry else [function]
        static = [v for v in module if v.size and v.name in self._shared_used]
        static += [v for f in owners for v in f.variables if v.space == "shared"]
        offsets: dict[str, int] = {}
        at = self.shared_start
        for v in static:
            offsets[v.name] = at = aligned(at, v.align)
            at += v.size
        dynamic = self.dynamic_start(at)
        return offsets | {v.name: dynamic for v in module if not v.size}, at

    @property
    def shared_start(self) -> int:
        return SYSTEM_SHARED_BYTES if self.module.architecture >= 90 else 0

    def dynamic_start(self, static_end: int) -> int:
        """The start of dynamic shared memory: after the static variables, aligned as its declarations require."""
        return aligned(static_end, max([16, *(v.align for v in self._dynamic)]))

    @cached_property
    def _dynamic(self) -> list[Variable]:
        return [v for v in self.module.variables.values() if v.space == "shared" and not v.size]

    @property
    def uses_dynamic(self) -> bool:
        return bool(self._dynamic)

    def shared_variables(self, entry: Function) -> list[Variable]:
        owners = [self.module.variables.values(), *(f.variables for f in self.reached(entry))]
        return [v for variables in owners for v in variables if v.space == "shared"]

    @cached_property
    def _shared_used(self) -> set[str]:
        operands = [o for f in self.module.functions.values() for i in _instrs(f) for o in i.operands]
        return {str(getattr(o, "name", None) or getattr(getattr(o, "base", None), "name", "")) for o in operands}

    def triggers(self, kernel: Function) -> bool:
        """Whether the kernel or a function that it calls triggers dependent launches."""
        instrs = (instr for function in self.reached(kernel) for instr in _instrs(function))
        return any(instr.op == "griddepcontrol" and "launch_dependents" in instr.mods for instr in instrs)

    def local(self, function: Function) -> tuple[dict[str, int], int]:
        """Offsets of a function's local variables, and their total size in bytes."""
        offsets: dict[str, int] = {}
        at = 0
        for v in function.variables:
            if v.space == "local":
                offsets[v.name] = at = aligned(at, max(v.align, 4))
                at += v.size
        return offsets, aligned(at, 16)

    def stack_bytes(self, kernel: Function) -> int:
        """An upper bound on the local memory of a kernel and its callees, in bytes."""
        return sum(self._stack_bytes(f) for f in self.reached(kernel))

    def _stack_bytes(self, f: Function) -> int:
        declared = sum(aligned(v.size, 16) for v in f.variables if v.space == "local")
        return declared or 16 * any(i.op == "alloca" for i in _instrs(f))


def parameter_places(function: Function) -> tuple[dict[str, tuple[int, int]], int]:
    """Offset and size of each of a kernel's parameters, and their total size in bytes."""
    places = {}
    at = 0
    for p in function.params:
        at = aligned(at, p.align)
        places[p.name] = at, p.size
        at += p.size
    return places, at


def _instrs(function: Function) -> list[Instr]:
    return [item for item in function.body if isinstance(item, Instr)]
