"""The seeded bugs of emulator/tests/seeded: what each program is, and what a run of it under the emulator found."""

import re
from dataclasses import dataclass
from pathlib import Path

from emulator.tests.programs import HERE, Execution, build, execute, target_of

SEEDED = HERE / "seeded"
ALL_SANITIZERS = frozenset({"memory", "race", "init", "sync"})
CORRECT = SEEDED / "correct.cu"
_MARK = re.compile(r"// BUG (\w+): (\w+)( host)?")
_PROGRAM = re.compile(r"^(?:PROGRAM|TWINS)\((\w+)\)", re.M)
_TWINS = re.compile(r"^TWINS\((\w+)\)", re.M)


@dataclass(frozen=True)
class SeededBug:
    """One program: `source NAME`. `lines` are where the bug is (a race has two places), in host code if `host`."""

    source: Path
    name: str
    check: str
    lines: frozenset[int]
    host: bool

    def __str__(self) -> str:
        return self.name


def programs_in(source: Path) -> list[str]:
    return _names(_PROGRAM, source)


def _names(pattern: re.Pattern[str], source: Path) -> list[str]:
    return pattern.findall(source.read_text())


def correct_programs() -> list[tuple[Path, str]]:
    """Programs that look wrong: those of correct.cu, and the twins of seeded bugs."""
    twins = [(source, f"correct_{name}") for source in sorted(SEEDED.glob("*.cu")) for name in _names(_TWINS, source)]
    return [(CORRECT, name) for name in programs_in(CORRECT)] + twins


def seeded_bugs() -> list[SeededBug]:
    """All bugs, in the order of files and of the programs in them. Raises ValueError for a program without a mark."""
    bugs = []
    for source in sorted(SEEDED.glob("*.cu")):
        if source == CORRECT:
            continue
        marks: dict[str, list[tuple[int, str, bool]]] = {}
        for number, line in enumerate(source.read_text().splitlines(), 1):
            for name, check, host in _MARK.findall(line):
                marks.setdefault(name, []).append((number, check, bool(host)))
        for name in programs_in(source):
            if name not in marks:
                raise ValueError(f"{source.name}: no line says `// BUG {name}: CHECK`")
            (check,) = {check for _, check, _ in marks[name]}
            lines = frozenset(number for number, _, _ in marks[name])
            bugs.append(SeededBug(source, name, check, lines, any(host for _, _, host in marks[name])))
    return bugs


def run(source: Path, name: str, folder: Path, *, leaks: bool = False) -> Execution:
    """Run one program with all checks on; a kernel may take a second."""
    program = build(source, watch=True, target=target_of(source))
    more = {"GRADER_EMULATOR_LEAKS": "1"} if leaks else {}
    return execute(program, name, folder=folder, timeout_s=60, GRADER_EMULATOR_KERNEL_SECONDS="1", **more)
