"""Translates PTX functions to C functions over warp vectors. Start at `translate_module`; each family of instructions
has its own file."""

from grader.emulator.translate.module import Translation, translate_module
from grader.emulator.translate.refusal import Finding, Refused
from grader.emulator.translate.template import Template

__all__ = ["Finding", "Refused", "Template", "Translation", "translate_module"]
