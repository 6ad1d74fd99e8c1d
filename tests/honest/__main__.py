"""`python -m tests.honest [NAMES…]`: grade every honest variant; each must pass every testcase, unflagged.

Those of `--assignment hw4` are unusual programs; those of half are unusual arithmetic. Those of softmax and matmul are
in Python: without Triton they are left out, and that is said. Ends with exit code 0 when all pass.
`--tests all` needs a CUDA machine.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.verdict import Verdict
from grader.commands import submissions
from grader.commands.choice import Choice
from grader.programs.engine import plan_program
from grader.records.record import Record
from tests.support.course import ROOT

PROGRAMS = Path(__file__).with_name("programs")
HALF = Path(__file__).with_name("half")
HEADERS = {PROGRAMS: [PROGRAMS / "honest.h"], HALF: [*HALF.glob("*.cuh"), ROOT / "reference/half/half_program.cuh"]}
PYTHON = Path(__file__).with_name("python")
"""A folder for each assignment."""
SAMPLES = {"hw4": "s01,s02", "half": "public", "softmax": "s02,s06", "matmul": "s02,s04"}


def variants(assignment: str = "hw4") -> list[Path]:
    """All of them, by name: files, and folders with a Makefile or several files."""
    if assignment == "half":
        return sorted(HALF.glob("*.cu"))
    if assignment != "hw4":
        return sorted((PYTHON / assignment).glob("*.py"))
    return sorted([*PROGRAMS.glob("*.cu"), *(path.parent for path in PROGRAMS.glob("*/hw4.cu"))])


def hand_in(variant: Path, place: Path) -> Path:
    """Lay a variant out as a student's folder; gives that folder."""
    folder = place / variant.stem
    folder.mkdir(parents=True)
    if variant.suffix == ".py":
        shutil.copyfile(variant, folder / f"{variant.parent.name}.py")
        return folder
    if variant.is_dir():
        shutil.copytree(variant, folder, dirs_exist_ok=True)
    else:
        shutil.copyfile(variant, folder / ("half.cu" if variant.parent == HALF else "hw4.cu"))
    for header in HEADERS[variant.parent]:
        shutil.copy(header, folder)
    return folder


def complaints(record: Record) -> list[str]:
    """What was wrongly held against an honest program."""
    found = [f"{test.name} is {test.verdict}: {test.reason}" for test in record.tests if test.verdict != Verdict.PASSED]
    found += [f"flagged: {flag}" for flag in record.flags]
    look = record.closer_look
    return (
        found + [f"on {look.test} with checks: {word}" for word in (look.cause, look.problem) if word]
        if look
        else found
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.honest", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--assignment", choices=sorted(SAMPLES), help="only those of this one")
    parser.add_argument("--tests", help="those to run, by default the samples")
    options = parser.parse_args()
    assignments = [options.assignment] if options.assignment else sorted(SAMPLES)
    known = [path for assignment in assignments for path in variants(assignment)]
    if unknown := set(options.names) - {path.stem for path in known}:
        raise UsageError(f"There is no variant {', '.join(sorted(unknown))}.")
    refused = graded = 0
    for assignment in assignments:
        chosen = [path for path in variants(assignment) if not options.names or path.stem in options.names]
        if not chosen:
            continue
        if chosen[0].suffix == ".py" and not plan_program.triton_version():
            print(f"Those of {assignment} are left out, for Triton is not installed: {plan_program.INSTALL}")
            continue
        with tempfile.TemporaryDirectory(prefix="honest-") as place:
            for path in chosen:
                [record] = submissions.grade_paths(
                    [hand_in(path, Path(place))],
                    Choice(assignment, options.tests or SAMPLES[assignment], options.engine),
                    quick=True,
                )
                found = complaints(record)
                graded += 1
                refused += bool(found)
                print(f"{'REFUSED' if found else 'passed '}  {record.submission.id}", flush=True)
                for complaint in found:
                    print(f"{'':11}{complaint[:300]}", flush=True)
    print(f"refused {refused} of {graded}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
