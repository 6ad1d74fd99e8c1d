"""PTX functions → C functions over warp vectors. `translate_module` is the way in; one file per instruction family."""

from grader.emulator.translate.module import Translation, translate_module
from grader.emulator.translate.refusal import Finding, Refused
from grader.emulator.translate.template import Template

__all__ = ["Finding", "Refused", "Template", "Translation", "translate_module"]
