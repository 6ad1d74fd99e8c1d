"""Translates PTX functions to C functions over warp vectors. Start at `translate_module`; each family of instructions
has its own file."""

from cudaemu.translate.launched import leave_out
from cudaemu.translate.module import Translation, translate_module
from cudaemu.translate.refusal import Refused

__all__ = ["Refused", "Translation", "leave_out", "translate_module"]
