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
    items_of,
)
from grader.emulator.ptx.modifiers import BITS, SPACES
from grader.emulator.ptx.operands import PtxSyntaxError
from grader.emulator.ptx.parser import link_modules, parse
