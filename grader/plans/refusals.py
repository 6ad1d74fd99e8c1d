"""The submission's line that ptxas refuses."""

from __future__ import annotations

import re

from grader.sandbox.room import Sentence, confined

_MOST_SAID, _MOST_OF_A_LINE = 1000, 400
_TRITON = "/triton/"
"""Part of the paths of Triton's own files, whose functions kernels call."""
_ERROR = re.compile(r"line (\d{1,9}); error\s*: (.*)")
_FILE = re.compile(r'\.file\s+(\d+) "([^"]*)"')
_PLACE = re.compile(r"(?:\.loc|inlined_at)\s+(\d+) (\d+) ")
_PLACE_IN_COMMENT = re.compile(r"(?<![\w.-])([\w.-]+\.py):(\d+):\d")


class Refused(Exception):
    """A kernel does not compile for a device. The text is for the student. `lacking`: another device may compile it."""

    def __init__(self, text: str, *, lacking: bool = False) -> None:
        super().__init__(text)
        self.lacking = lacking


@confined()
def refusal(said: str, ptx: str) -> Sentence:
    """ptxas's first error in a kernel, at the line of the submission's file, with the instruction that it means."""
    found = _ERROR.search(said)
    if found is None:
        return said.strip()[:_MOST_SAID]
    lines = ptx.splitlines()[: int(found[1])]
    why, instruction = found[2][:_MOST_OF_A_LINE], lines[-1].strip()[:_MOST_OF_A_LINE] if lines else ""
    error = f"error: ptxas refuses an instruction of this line: {why}\n    {instruction}"
    files = {number: name.rpartition("/")[2] for number, name in _FILE.findall(ptx) if _TRITON not in name}
    place, in_assembly = "", False
    for line in lines:
        if "inline asm" in line:  # within it, Triton 3.9 counts the lines of its text
            in_assembly = "begin" in line
        elif not in_assembly:
            places = [(files.get(file), number) for file, number in _PLACE.findall(line)]
            own = [each for each in places + _PLACE_IN_COMMENT.findall(line) if each[0] in files.values()]
            place = f"{own[-1][0]}:{own[-1][1]}: " if own else place  # the innermost call comes first
    return (place + error)[:_MOST_SAID]
