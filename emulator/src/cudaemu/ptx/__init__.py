"""Parse PTX text into a `Module` of typed variables, functions and instructions."""

from cudaemu.ptx.model import (
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
from cudaemu.ptx.modifiers import BITS, SPACES
from cudaemu.ptx.operands import PtxSyntaxError
from cudaemu.ptx.parser import link_modules, parse
