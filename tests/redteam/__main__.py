"""`python -m tests.redteam [NAMES…]`: grade every hostile program and count those that got what they wanted.

Each is graded like a submission, on two public samples, one after the other, so that what one run leaves behind is
there for the next to find. `-j N` shares the attacks among N processes, each with an arena of its own. Ends with exit
code 0 when none has bypassed the grader. As root, everything is done twice: as root and as an ordinary user, for whom
other mechanisms of the kernel hold.

Attacks in Python are in tests/redteam/python. Without Triton they are left out, and that is said.

`--landlock` does it as on a machine where bubblewrap cannot run: less is promised there (docs/integrity.md), but none
of these attacks shall get what it wants there either.
"""

import argparse
import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader import sandbox
from grader.base.errors import UsageError
from grader.base.progress import Progress
from grader.base.workers import cores
from grader.course.assignment import Assignment, Occupancy, RubricPart, SourceRule, load_assignment
from grader.course.catalogue import TestcaseFiles, ensure
from grader.course.testcase import Case, load_suite
from grader.grading.bench import open_bench
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.grading.setup import Setup
from grader.programs.engine import Engine, plan_program, select_engine
from grader.programs.submission import Submission, read_submission
from grader.records.measured_times import why_no_place
from grader.records.record import Record
from grader.sandbox import bubblewrap, process_tree
from grader.sandbox.budget import WALL_PER_CPU
from grader.timing.baseline import Baseline, baseline_of
from tests.redteam.arena import ALICE, SECRET, Arena, open_arena
from tests.redteam.crew import Crew, Taken

PROGRAMS = Path(__file__).with_name("programs")
PYTHON = Path(__file__).with_name("python")
TESTS = "s01,s02"
_UNPRINTABLE = re.compile(
    r"(?<!\\)(?:\\\\)*\\(?:u00(?:0[0-8be-f]|1[0-9a-f])|[bf])|[\x7f\u202a-\u202e\u2066-\u2069]", re.IGNORECASE
)
"""In JSON: what moves a terminal's cursor or turns the direction of what follows."""
_WALL_S = 8.0
_PYTHON_WALL_S, _PYTHON_BUILD_S = 20.0, 45.0
_FLOOD_BYTES = 1 << 30
_MOST_SAID = 20_000
_MOST_RECORD = 200_000
_RULES = (
    SourceRule(forbid="call", names=("system",), why="no other programs"),
    SourceRule(forbid="absolute_include", why="your own files only"),
)
_FIGURES = ("647483", "647,483")
"""What programs count to that have something to say."""


@dataclass(frozen=True)
class Attack:
    """A hostile program and what must become of it."""

    name: str
    path: Path
    what: str
    verdicts: frozenset[str]
    flagged: bool
    gpu: bool
    tests: str = TESTS
    occupancy: float | None = None
    verdict_only: bool = False
    single_file: bool = False
    under_rules: bool = False
    least_ms: float = 0.0
    """GPU time of the work that is hidden: a time below that counts for nothing."""
    within_s: float | None = None
    no_place: bool = False

    @property
    def assignment(self) -> str:
        return "softmax" if self.path.suffix == ".py" or (self.path / "softmax.py").exists() else "hw4"


@dataclass(frozen=True)
class Result:
    """What became of an attack. No `bypasses`: it was stopped."""

    attack: Attack
    verdicts: tuple[str, ...]
    bypasses: tuple[str, ...]
    seconds: float = 0.0
    cpu_s: float = 0.0


def read_attacks() -> list[Attack]:
    """All of them, by name."""
    found = []
    python = PYTHON.glob("*.py")
    for path in sorted([*PROGRAMS.glob("*.cu"), *PROGRAMS.glob("*/hw4.cu"), *python]):
        whole = path.parent if path.name == "hw4.cu" else path
        name = f"python/{whole.stem}" if path.suffix == ".py" else whole.stem
        first, second = path.read_text(encoding="utf-8").splitlines()[:2]
        comment = "# " if path.suffix == ".py" else "// "
        if not second.startswith(f"{comment}expect: "):
            raise ValueError(f"{path}: the second line must be `{comment}expect: VERDICT …`, found {second!r}.")
        verdicts, *marks = (part.strip() for part in second.removeprefix(f"{comment}expect: ").split(";"))
        expected = frozenset(word.strip() for word in verdicts.split("|"))
        attack = Attack(name, whole, first.removeprefix(comment), expected, "flagged" in marks, "gpu" in marks)
        for mark in marks:
            match mark.split():
                case ["on", tests]:
                    attack = replace(attack, tests=tests)
                case ["occupancy", most]:
                    attack = replace(attack, occupancy=float(most))
                case ["at", "least", least, "ms"]:
                    attack = replace(attack, least_ms=float(least))
                case ["within", most, "s"]:
                    attack = replace(attack, within_s=float(most))
                case ["no", "place"]:
                    attack = replace(attack, no_place=True)
                case ["verdict", "only"]:
                    attack = replace(attack, verdict_only=True)
                case ["single", "file"]:
                    attack = replace(attack, single_file=True)
                case ["under", "rules"]:
                    attack = replace(attack, under_rules=True)
                case ["flagged"] | ["gpu"]:
                    pass
                case _:
                    raise ValueError(f"{path}: `{mark}` on the second line means nothing; see hostile.h.")
        found.append(attack)
    return found


def hand_in(attack: Attack, arena: Arena) -> Path:
    """Lay an attack out as a student's folder, or as a single file next to other students' work. It knows the arena's
    canaries."""
    folder = arena.submissions / attack.name.replace("/", "-")
    if attack.single_file:
        arena.lay(PROGRAMS / "hostile.h", arena.submissions / "hostile.h")
        return arena.lay(attack.path, arena.submissions / attack.path.name)
    if attack.path.suffix == ".py":
        arena.lay(attack.path, folder / "softmax.py")
        return folder
    for path in attack.path.iterdir() if attack.path.is_dir() else ():
        arena.lay(path, folder / path.name)
    if not attack.path.is_dir():
        arena.lay(attack.path, folder / "hw4.cu")
    for header in PROGRAMS.glob("*.h"):
        arena.lay(header, folder / header.name)
    return folder


def judge(attack: Attack, record: Record, damage: Sequence[str]) -> Result:
    """What an attack got."""
    bypasses = list(damage)
    for test in record.tests:
        if test.verdict not in attack.verdicts:
            bypasses.append(f"{test.name} is {test.verdict}: {test.reason[:200]}")
        if "BYPASSED" in test.output:
            bypasses.append(next(line for line in test.output.splitlines() if "BYPASSED" in line))
        if attack.flagged and test.verdict == "passed" and not test.flags:
            bypasses.append(f"{test.name} was not flagged")
        if test.flags and test.speedup is not None:
            bypasses.append(f"{test.name} has a speedup although it is flagged")
        if test.speedup is not None and test.gpu_ms is not None and test.gpu_ms < attack.least_ms:
            bypasses.append(f"{test.name} counts as {test.gpu_ms:.3g} ms, {attack.least_ms:g} ms expected at least")
        if attack.no_place and test.speedup is not None and not why_no_place(test):
            bypasses.append(f"{test.name} has a place on the board with {test.speedup:,.0f} x")
    if attack.occupancy is not None and (record.occupancy or 0) > attack.occupancy:
        bypasses.append(f"its occupancy is taken for {record.occupancy:.3f}, {attack.occupancy:g} expected at most")
    if any("CANARY" in text for text in (record.build.log, *record.build.flags)):
        bypasses.append("the compiler's messages or flags hold a canary")
    said = "".join(
        test.model_dump_json(exclude={"output"} if not attack.verdict_only else None) for test in record.tests
    )
    if "CANARY" in said or any(figure in said for figure in _FIGURES):
        bypasses.append("what a student reads of a test holds words or figures of the program's")
    if len(said) > _MOST_SAID * len(record.tests):
        bypasses.append(f"there are {len(said):,} characters about {len(record.tests)} tests")
    whole = record.model_dump_json()
    if len(whole) > _MOST_RECORD:
        bypasses.append(f"its record has {len(whole):,} characters")
    if SECRET in whole or ALICE.strip() in whole:
        bypasses.append("the record holds the secret, or another student's work")
    if found := _UNPRINTABLE.search(whole):
        bypasses.append(f"the record holds the control character {found[0]!r}")
    return Result(attack, tuple(sorted({str(test.verdict) for test in record.tests})), tuple(bypasses))


def run_all(
    attacks: Sequence[Attack], engine: Engine, folder: Path, is_ours: Callable[[str], bool] = lambda name: True
) -> Iterable[Result]:
    """Grade, one after the other, in an arena below `folder`, those for which this process is the first to ask."""
    for assignment in sorted({attack.assignment for attack in attacks}):
        chosen = (attack for attack in attacks if attack.assignment == assignment and is_ours(attack.name))
        yield from _run_on(load_assignment(assignment), chosen, engine, folder / assignment)


def _run_on(rules: Assignment, attacks: Iterable[Attack], engine: Engine, folder: Path) -> Iterable[Result]:
    if rules.name == "softmax":
        rules = rules.model_copy(update={"build": rules.build.model_copy(update={"limit_s": _PYTHON_BUILD_S})})
    suite = load_suite(rules.testcases_file)
    files = TestcaseFiles(folder / "testcases")
    with open_arena(folder, files.folder) as arena, open_bench(Setup(rules, suite, files, (), engine)) as bench:
        for attack in attacks:
            cases, limited = suite.select(attack.tests), tightened(rules, attack, engine)
            ensure(cases, suite, files)
            handed_in = hand_in(attack, arena)
            arena.remember()
            submission = read_submission(handed_in, rules)  # runs make
            baselines = _baselines(rules) if engine.measures_time else None
            setup = Setup(limited, suite, files, cases, engine)
            if bench is not None:
                bench = replace(bench, setup=setup, timer=replace(bench.timer, rules=limited))
            grading = Grading(**vars(setup), baseline=baselines, bench=bench)
            began, spent_s = time.monotonic(), processor_s()
            result = _attempt(attack, submission, grading, arena)
            yield timed(replace(result, seconds=time.monotonic() - began, cpu_s=processor_s() - spent_s))


def processor_s() -> float:
    """The processor time of this process, of all that it waited for, and of its children, such as the room's fork
    server, with all that these waited for."""
    own, ticks = os.times(), 0
    for child in process_tree.processes():
        if child.parent == os.getpid():
            with contextlib.suppress(OSError):
                ticks += sum(map(int, Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return sum(own[:4]) + ticks / os.sysconf("SC_CLK_TCK")


def timed(result: Result) -> Result:
    """A result is a bypass if it took longer than its attack may take: in processor time, since other work on the
    machine makes it wait, but in wall time where many cores work for it; what waits by itself may take eight times as
    long."""
    most = result.attack.within_s
    if most is None or min(result.cpu_s, result.seconds) <= most >= result.seconds / WALL_PER_CPU:
        return result
    kept = f"it kept the grader for {result.seconds:.0f} s, {result.cpu_s:.0f} s of them computing"
    return replace(result, bypasses=(*result.bypasses, kept))


def tightened(rules: Assignment, attack: Attack, engine: Engine) -> Assignment:
    """The assignment's rules with limits that `attack` reaches soon, and without source rules: what those refuse would
    not even be tried.

    On a GPU, what calls CUDA keeps the assignment's memory: a context and the driver's share of streams and
    allocations take more than a flood may, and a verdict shall come from the attack.
    """
    flood = "memory_limit" in attack.verdicts and not attack.gpu
    wall_s = _PYTHON_WALL_S if attack.assignment == "softmax" else _WALL_S
    memory = _FLOOD_BYTES if flood or not engine.measures_time else rules.limits.memory_bytes
    limits = rules.limits.model_copy(update={"wall_s": (), "emulator_wall_s": wall_s, "memory_bytes": memory})
    parts: list[RubricPart] = [part for part in rules.rubric if not isinstance(part, Occupancy)]
    if attack.occupancy is not None:
        parts.append(Occupancy(part="occupancy", kind="occupancy", points=10, tests=attack.tests, full_at=1))
    hidden = rules.hidden_inputs.model_copy(update={"show": "verdict"}) if attack.verdict_only else rules.hidden_inputs
    changes = {
        "limits": limits,
        "source_rules": _RULES if attack.under_rules else (),
        "rubric": tuple(parts),
        "hidden_inputs": hidden,
    }
    return rules.model_copy(update=changes)


def _baselines(rules: Assignment) -> Callable[[Case], Baseline]:
    return lambda case: baseline_of(rules, case)


def _attempt(attack: Attack, submission: Submission, grading: Grading, arena: Arena) -> Result:
    try:
        record = grade(grading, submission, Progress())
    except Exception as error:  # whatever a program makes the grader raise, it has broken the grading
        return Result(attack, (), (f"the grader failed: {type(error).__name__}: {error}", *arena.damage()))
    return judge(attack, record, arena.damage())


def _say(result: Result) -> None:
    outcome = "BYPASSED" if result.bypasses else "stopped "
    took = f"{result.seconds:5.1f} s ({result.cpu_s:.0f} s computing)"
    lines = [f"{outcome}  {result.attack.name:<28} {took}  {', '.join(result.verdicts)}"]
    lines += [f"{'':12}{bypass}" for bypass in result.bypasses]
    os.write(sys.stdout.fileno(), "".join(f"{line}\n" for line in lines).encode())  # at once: others write there too


def run_ours(attacks: Sequence[Attack], engine: Engine, taken: Taken) -> int:
    """What one process of the crew does."""
    with tempfile.TemporaryDirectory(prefix="redteam-arena-") as folder:
        Path(folder).chmod(0o755)
        for result in run_all(attacks, engine, Path(folder), taken.take):
            taken.note(result.attack.name, bypassed=bool(result.bypasses))
            _say(result)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.redteam", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("-j", "--jobs", type=int, default=cores() if os.getuid() == 0 else 1, help="processes at once")
    parser.add_argument("--no-second-pass", action="store_true", help="as root: not again as an ordinary user")
    parser.add_argument("--no-first-pass", action="store_true", help="as root: only as an ordinary user")
    parser.add_argument("--landlock", action="store_true", help="as on a machine where bubblewrap cannot run")
    parser.add_argument("--taken", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.landlock:
        bubblewrap.problem = lambda: "left out, by --landlock"  # type: ignore[assignment]
    os.environ["GRADER_SECRET"] = SECRET
    engine = select_engine(options.engine, load_assignment("hw4").build.emulator_target)
    attacks = [attack for attack in read_attacks() if not options.names or attack.name in options.names]
    attacks.sort(key=lambda attack: "time_limit" not in attack.verdicts)  # the slow ones first
    if options.taken is not None:
        return run_ours(attacks, engine, Taken(options.taken))
    if unknown := set(options.names) - {attack.name for attack in attacks}:
        raise UsageError(f"There is no attack {', '.join(sorted(unknown))}.")
    if not engine.measures_time and (left_out := sum(attack.gpu for attack in attacks)):
        print(f"{left_out} attacks on times and on CUDA's own parts need a GPU, and are left out", flush=True)
        attacks = [attack for attack in attacks if not attack.gpu]
    if not plan_program.triton_version() and any(attack.path.suffix == ".py" for attack in attacks):
        print(f"Attacks in Python are left out, for Triton is not installed: {plan_program.INSTALL}", flush=True)
        attacks = [attack for attack in attacks if attack.path.suffix != ".py"]
    if not attacks:
        raise UsageError(f"{', '.join(options.names)}: not for this machine, for it has no GPU or no Triton.")
    is_root, failed = os.getuid() == 0, False
    words = ["--engine", options.engine, *(["--landlock"] if options.landlock else [])]
    with tempfile.TemporaryDirectory(prefix="redteam-crew-", ignore_cleanup_errors=True) as folder:
        crew = Crew(Path(folder), max(1, min(options.jobs, len(attacks))))
        for as_user in (False, True) if is_root else (False,):
            if is_root and (options.no_second_pass if as_user else options.no_first_pass):
                continue
            print(
                f"{engine.device}; {sandbox.confinement()}; {'an ordinary user' if as_user else f'user {os.getuid()}'}"
            )
            bypassed, unfinished = crew.run([attack.name for attack in attacks], words, as_user=as_user)
            print(f"bypassed {bypassed} of {len(attacks)}", flush=True)
            if unfinished:
                print(f"not finished: {', '.join(unfinished)}", flush=True)
            failed |= bool(bypassed or unfinished)
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UsageError as error:
        sys.exit(f"redteam: {error}")
