"""The course's folders as tests need them: the checkout, programs to grade, copies of the course with other limits."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs" / "hw4"
QUICK = "s01,s02"


def course_with_emulator_limit(root: Path, wall_s: int) -> Path:
    """Makes `root` a course of one assignment, whose emulator stops programs after so many seconds."""
    (root / "assignment/hw4").mkdir(parents=True)
    rules = (ROOT / "assignment/hw4/assignment.yaml").read_text()
    assert "emulator_wall_s: 60" in rules
    rules = rules.replace("emulator_wall_s: 60", f"emulator_wall_s: {wall_s}")
    (root / "assignment/hw4/assignment.yaml").write_text(rules)
    (root / "reference").symlink_to(ROOT / "reference")
    (root / "testcases").mkdir()
    (root / "testcases/hw4.yaml").write_text((ROOT / "testcases/hw4.yaml").read_text())
    return root
