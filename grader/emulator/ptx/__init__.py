"""Parse PTX text into a `Module` of typed variables, functions and instructions."""

from grader.emulator.ptx.model import (
    Function,
    Imm,
    Instr,
    Loc,
    Mem,
    Module,
    Operand,
    Param,
    Reg,
    Sym,
    Variable,
    Vec,
)
from grader.emulator.ptx.modifiers import BITS, SPACES
from grader.emulator.ptx.operands import PtxSyntaxError
from grader.emulator.ptx.parser import link_modules, parse

__all__ = [
    "BITS",
    "SPACES",
    "Function",
    "Imm",
    "Instr",
    "Loc",
    "Mem",
    "Module",
    "Operand",
    "Param",
    "PtxSyntaxError",
    "Reg",
    "Sym",
    "Variable",
    "Vec",
    "link_modules",
    "parse",
]
