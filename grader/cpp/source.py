"""What a submission's source contains: values with lines, for the checks that explain a failure.

The expressions in them are the source's own text, shortened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from grader.base.sizes import Whole

MAX_TEXT = 200
MAX_ITEMS = 20_000

Text = Annotated[str, Field(max_length=MAX_TEXT)]
Of = TypeVar("Of")
Many = Annotated[tuple[Of, ...], Field(max_length=MAX_ITEMS)]
Texts = Annotated[tuple[Text, ...], Field(max_length=64)]


class Item(BaseModel):
    """Something in a file, from line `line` to line `end`. `function` is the name of the function around it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    file: Text
    line: Whole
    end: Whole
    function: Text = ""

    def holds(self, file: str, line: int) -> bool:
        return self.file == file and self.line <= line <= self.end


class Function(Item):
    """A function with its body. `space` is global, device or host; parameters are (type, name)."""

    name: Text
    space: Text
    parameters: Annotated[tuple[tuple[Text, Text], ...], Field(max_length=128)] = ()


class Loop(Item):
    """A for, while or do loop, with the text of its condition. `steps` of a for are its initializer and its update."""

    condition: Text = ""
    steps: Texts = ()


class Branch(Item):
    """An if, with its condition. `leaves`: its first branch ends in return, break or continue. `end` is the end of that
    branch."""

    condition: Text = ""
    leaves: bool = False


class Call(Item):
    """A call of a function by its name, with the text of its arguments. `given` is what its result is stored in."""

    name: Text
    arguments: Texts = ()
    given: Text = ""

    @property
    def is_barrier(self) -> bool:
        return self.name.startswith(("__syncthreads", "__syncwarp", "bar_", "barrier_")) or self.name == "sync"


class Launch(Item):
    """A kernel launch, with the text of its configuration (grid, block, shared bytes, stream) and arguments."""

    name: Text
    template: Texts = ()
    configuration: Texts = ()
    arguments: Texts = ()


class Variable(Item):
    """A declaration of a variable: its type without qualifiers (`float`), the pointers and dimensions that it goes
    through, its value's text. `shared`: __shared__."""

    name: Text
    type: Text
    pointers: Whole = 0
    value: Text = ""
    shared: bool = False


class Assigned(Item):
    """`target operator value`, with the first name and the text of the target: `acc`, `acc[x]`, `+=`, `p * v`."""

    name: Text
    target: Text
    operator: Text
    value: Text


class Quotient(Item):
    """`left / right`. `real`: the result becomes a real number, in a declaration or as a mathematical function's
    argument."""

    left: Text
    right: Text
    real: bool = False


class Use(Item):
    """An element of an array, `name[index]`, with all its indices in one text: `[row][key]`."""

    name: Text
    index: Text


class Source(BaseModel):
    """All files of a submission together, in the order of files and lines."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    functions: Many[Function] = ()
    loops: Many[Loop] = ()
    branches: Many[Branch] = ()
    calls: Many[Call] = ()
    launches: Many[Launch] = ()
    variables: Many[Variable] = ()
    assignments: Many[Assigned] = ()
    quotients: Many[Quotient] = ()
    uses: Many[Use] = ()
    returns: Many[Item] = ()

    def function_at(self, file: str, line: int) -> Function | None:
        """The innermost function around a line."""
        return max((f for f in self.functions if f.holds(file, line)), key=lambda f: f.line, default=None)

    def loops_around(self, file: str, line: int) -> list[Loop]:
        """The loops around a line, the outermost first."""
        return sorted((loop for loop in self.loops if loop.holds(file, line)), key=lambda loop: (loop.line, -loop.end))

    def type_of(self, name: str, file: str, line: int) -> tuple[str, int]:
        """(type, pointers) of the variable or parameter `name` that is in scope at a line; ("", 0) if unknown."""
        function = self.function_at(file, line)
        near = [v for v in self.variables if v.name == name and v.file == file and v.line <= line]
        for variable in reversed(near):
            if variable.function in ("", function.name if function else "") and (
                not variable.function or function is None or function.line <= variable.line
            ):
                return variable.type, variable.pointers
        for type, parameter in function.parameters if function else ():
            if parameter == name:
                return type.replace("*", "").replace("const ", "").strip(), type.count("*")
        return "", 0

    def calls_of(self, *names: str) -> list[Call]:
        return [call for call in self.calls if call.name in names]


def line_of(files: Sequence[tuple[str, bytes]], file: str, number: int) -> str:
    """The text of line `number`, from 1, of `file`, named as in the compiler's messages; '' if there is none."""
    lines = dict(files).get(file, b"").splitlines()[number - 1 : number]
    return b"".join(lines).decode(errors="replace")
