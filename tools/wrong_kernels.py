"""Grades every wrong solution of an assignment and writes the outcomes to docs/wrong-kernels.md.

    python -m tools.wrong_kernels [--assignment hw4] [--tests public] [--engine auto] [--write docs/wrong-kernels.md]

A wrong solution is reference/NAME/wrong/*.cu; its second line states the expected outcome (see wrong.cuh there). Ends
with exit code 1 when one passes that must not, when one is refused where it is right, or when fewer than 80 % are
diagnosed as they should be. On a machine without a GPU run it for the public samples; `--tests all` needs one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tabulate import tabulate

from grader.base.verdict import STUDENT_VERDICTS
from grader.commands import submissions
from grader.commands.choice import Choice
from grader.course.assignment import load_assignment
from grader.course.testcase import Case, Suite, load_suite
from grader.operators import Operator
from grader.records.record import Record, TestRecord

DIAGNOSED_SHARE = 0.8
BLIND = "## Blind: programs by people who had not seen the grader\n"
ONE_KEY, ONE_KEY_SUFFIX = "ONE_KEY_AT_A_TIME", "-one-key"
"""The definition that makes the shared header a kernel of one key at a time, and the suffix of its name in the
table."""
_EXPECTATION = re.compile(r"^// expect: (?P<verdict>\w+) on (?P<where>[^:]+): (?P<words>.+)$")


@dataclass(frozen=True)
class WrongKernel:
    """A wrong solution and what is expected of it. `words`: any of them must be in the cause that a student reads."""

    path: Path
    mistake: str
    verdict: str
    where: tuple[str, ...]
    words: tuple[str, ...]
    tiles_only: bool = False
    """Whether it is a mistake with a tile in shared memory, which a kernel of one key at a time cannot make."""
    one_key: bool = False
    """Whether this is the style of one key at a time."""

    @property
    def name(self) -> str:
        return f"{self.path.stem}{ONE_KEY_SUFFIX if self.one_key else ''}"

    @property
    def is_wrong_somewhere(self) -> bool:
        """Whether it must be refused, no matter on which testcases: rounding decides on which it shows."""
        return self.where == ("most",)

    def is_wrong_on(self, case: Case, operator: Operator) -> bool:
        """Whether this solution must be refused on `case`."""
        dimensions = dict(zip(operator.dimension_names, map(str, case.shape), strict=True))
        for place in self.where:
            name, equals, value = place.partition("=")
            if place in ("all", case.name) or (equals and dimensions.get(name) == value):
                return True
        return False


@dataclass(frozen=True)
class Finding:
    """The outcome of one wrong solution on its tests."""

    kernel: WrongKernel
    refused: dict[str, tuple[int, int]]
    """By group, the number of tests that refused it, and of tests that must."""
    missed: tuple[str, ...]
    """Tests that must refuse it, and did not."""
    wrongly_refused: tuple[str, ...]
    verdicts: tuple[str, ...]
    diagnosis: str
    diagnosed: bool | None
    """Whether the reason names the cause; None where it was right on all tests it was run on."""


def read_wrong_kernels(folder: Path) -> list[WrongKernel]:
    """All wrong solutions in a folder, by name, in both styles if the header has both. Raises ValueError for a file
    whose second line says nothing."""
    kernels = []
    for path in sorted(folder.glob("*.cu")):
        first, second, third = path.read_text(encoding="utf-8").splitlines()[:3]
        expected = _EXPECTATION.match(second)
        if expected is None:
            raise ValueError(f"{path}: the second line must be `// expect: VERDICT on WHERE: WORDS`, found {second!r}.")
        kernels.append(
            WrongKernel(
                path,
                first.removeprefix("// "),
                expected["verdict"],
                tuple(part.strip() for part in expected["where"].split(",")),
                tuple(part.strip() for part in expected["words"].split(" | ")),
                tiles_only=third.strip() == "// tiles only",
            )
        )
    if any(ONE_KEY in path.read_text(encoding="utf-8") for path in folder.glob("*.cuh")):
        kernels += [replace(kernel, one_key=True) for kernel in kernels if not kernel.tiles_only]
    return sorted(kernels, key=lambda kernel: kernel.name)


def judge(kernel: WrongKernel, record: Record, suite: Suite) -> Finding:
    """Compare a record with what is expected. The cause is named where most tests name it, or the closer look, with
    which the report leads."""
    refused: dict[str, tuple[int, int]] = {}
    missed, wrongly, matching, reasons, verdicts = [], [], 0, [], set()
    for test in record.tests:
        case = suite.cases[test.name]
        wrong = test.verdict in STUDENT_VERDICTS
        if kernel.is_wrong_on(case, suite.operator) or (kernel.is_wrong_somewhere and wrong):
            done, of = refused.get(case.group, (0, 0))
            refused[case.group] = (done + wrong, of + 1)
            if not wrong:
                missed.append(test.name)
                continue
            verdicts.add(str(test.verdict))
            reasons.append(test)
            matching += any(word in test.reason for word in kernel.words) and test.verdict == kernel.verdict
        elif wrong:
            wrongly.append(test.name)
    if kernel.is_wrong_somewhere and not reasons:
        missed = [test.name for test in record.tests]
    look = record.closer_look.cause if record.closer_look is not None else ""
    named = matching * 2 > len(reasons) or any(word in look for word in kernel.words)
    return Finding(
        kernel,
        refused,
        tuple(missed),
        tuple(wrongly),
        tuple(sorted(verdicts)),
        _diagnosis(reasons),
        named if reasons else None,
    )


def _diagnosis(tests: Sequence[TestRecord]) -> str:
    """The cause that most of the tests name or, if no cause is known, the consequence."""
    said = [test.cause or test.reason for test in tests]
    return max(said, key=said.count, default="")


def render(findings: Sequence[Finding], *, tests: str, device: str) -> str:
    """The page, in Markdown."""
    wrong = [finding for finding in findings if finding.diagnosed is not None]
    named = sum(bool(finding.diagnosed) for finding in wrong)
    rows = [
        (
            f"`{finding.kernel.name}`",
            finding.kernel.mistake,
            ", ".join(f"{group} {done} of {of}" for group, (done, of) in finding.refused.items()) or "right here",
            ", ".join(finding.verdicts) or "passed",
            finding.diagnosis.replace("|", "\\|") or "-",
            {True: "yes", False: "no", None: "-"}[finding.diagnosed],
        )
        for finding in findings
    ]
    headers = ("kernel", "mistake", "refused", "verdict", "what the student reads (on most tests)", "cause named")
    return "\n".join(
        [
            "# Wrong solutions and what the grader says of them",
            "",
            f"Written by `python -m tools.wrong_kernels --tests {tests}`; do not edit. Run on: {device}.",
            "",
            f"{len(wrong)} of {len(findings)} solutions are wrong on these testcases. "
            f"{sum(not finding.missed for finding in wrong)} of {len(wrong)} are refused on every testcase that must, "
            f"{named} of {len(wrong)} ({100 * named / max(1, len(wrong)):.0f} %) are diagnosed with the right cause.",
            "A solution that is right on some shapes (d = 32 taken for granted, overflows at large N) counts where it "
            "is wrong.",
            "",
            tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True),
            "",
        ]
    )


def blind_half(page: Path) -> str:
    """The part of an existing page on programs by people who had not seen the grader: it is written by hand."""
    _, found, kept = page.read_text(encoding="utf-8").partition(BLIND) if page.exists() else ("", "", "")
    return f"\n{found}{kept}" if found else ""


def hand_in(kernel: WrongKernel, place: Path) -> Path:
    """A copy in a separate folder, with the header that wrong solutions share, since a file that is graded with others
    brings no header."""
    folder = place / kernel.name
    folder.mkdir()
    for path in (kernel.path, *kernel.path.parent.glob("*.cuh")):
        shutil.copyfile(path, folder / path.name)
    if kernel.one_key:
        source = folder / kernel.path.name
        source.write_text(f"#define {ONE_KEY}\n{source.read_text()}")
    return folder / kernel.path.name


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--assignment", default="hw4")
    parser.add_argument("--tests", default="public")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page here")
    parser.add_argument("names", nargs="*", help="only these")
    options = parser.parse_args(arguments)
    rules = load_assignment(options.assignment)
    suite = load_suite(rules.testcases_file)
    kernels = read_wrong_kernels(rules.reference_folder / "wrong")
    kernels = [kernel for kernel in kernels if not options.names or kernel.name in options.names]
    with tempfile.TemporaryDirectory(prefix="wrong-kernels-") as place:
        records = submissions.grade_paths(
            [hand_in(kernel, Path(place)) for kernel in kernels],
            Choice(rules.name, options.tests, options.engine),
        )
    findings = [judge(kernel, record, suite) for kernel, record in zip(kernels, records, strict=True)]
    page = render(findings, tests=options.tests, device=records[0].engine.device)
    if options.write:
        options.write.write_text(page + blind_half(options.write), encoding="utf-8")
    return report(findings)


def report(findings: Sequence[Finding]) -> int:
    """Print the failures and the numbers, and return the exit code."""
    for finding in findings:
        if finding.missed:
            print(f"NOT REFUSED  {finding.kernel.name}: passes {', '.join(finding.missed)}")
        if finding.wrongly_refused:
            print(f"REFUSED WHERE RIGHT  {finding.kernel.name}: {', '.join(finding.wrongly_refused)}")
        if finding.diagnosed is False:
            print(f"not named    {finding.kernel.name} ({' | '.join(finding.kernel.words)}): {finding.diagnosis}")
    wrong = [finding for finding in findings if finding.diagnosed is not None]
    named = sum(bool(finding.diagnosed) for finding in wrong)
    missed = sum(bool(finding.missed) for finding in findings)
    print(f"refused {len(wrong) - missed} of {len(wrong)}, diagnosed {named} of {len(wrong)}")
    sound = not missed and not any(finding.wrongly_refused for finding in findings)
    return 0 if sound and named >= DIAGNOSED_SHARE * len(wrong) else 1


if __name__ == "__main__":
    sys.exit(main())
