"""A class whose folders have hostile names goes through every report: no name commands what reads it."""

import csv
import io
import json
import os
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.classes.batch.class_folder import find_class
from grader.classes.final_points import Line, gradebook
from grader.course.assignment import Assignment, load_assignment
from grader.report import gradebook as grades
from grader.report import gradescope, junit, leaderboard, terminal
from grader.report.explain import explain
from grader.site.class_site import build_site
from grader.store import HandIn, Store
from tests.support.records import made_record

NAMES = {
    "escape": b"\x1b[2J\x1b]0;title\x07",
    "no UTF-8": b"\xff\xfe\x80name",
    "direction": "\u202egnorw\u2066".encode(),
    "line ends": b"a\r\nb\tc",
    "markup": b"<script>alert(1)<",
    "attribute": b"\" onmouseover='alert(1)'",
    "formula": b'=HYPERLINK("http:evil","x")',
    "command": b"@SUM(1+1)*cmd|'calc'!A0",
    "plus": b"+1+1",
    "minus": b"-1+1|cmd",
    "table": b"a | b | `c` [x](javascript:alert(1)) **d**",
    "latex": b"\\input{etc}_%$#^~&",
    "template": b"{{ 7*7 }}{% raw %}${7*7}",
    "shell": b"$(touch x);`touch x`|&",
    "option": b"--help",
    "dots": b"~...",
    "long": b"n" * 255,
    "quotes": b"'\"'\",;",
    "like another": "e\u0301".encode(),
    "wide": "\U0001f600\u200b\ufeff".encode(),
}
"""As bytes of a folder's name."""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag if tag != "script" else f"script of {dict(attrs).get('src')}", *(name for name, _ in attrs)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Hand-ins found in folders of these names, graded alike."""
    place = tmp_path_factory.mktemp("names")
    for name in NAMES.values():
        folder = place / "class" / os.fsdecode(name)
        folder.mkdir(parents=True)
        (folder / "hw4.cu").write_text("int main() {}\n")
    made = Store(place / "store.sqlite")
    found, _ = find_class(place / "class", load_assignment("hw4"))
    assert len({one.student for one in found}) == len(NAMES)
    for number, one in enumerate(found):
        made.add_student(one.student, name=one.student, nickname=one.student)
        record = made_record(one.student, speedups=[10.0 + number])
        sha256 = f"{number:064}"
        record = record.model_copy(update={"submission": record.submission.model_copy(update={"sha256": sha256})})
        handed_in = datetime(2026, 11, 20, tzinfo=UTC)
        files = (("hw4.cu", b"int main() {}\n"),)
        kept = made.add_submission(HandIn("hw4", one.student, sha256, f"class/{number}", handed_in, files=files))
        made.add_record(kept, "c", record)
    return made


def lines_of(store: Store) -> list[Line]:
    return gradebook(store, "hw4")


@pytest.mark.parametrize("report", [terminal.render, terminal.summary, explain])
def test_no_name_commands_a_terminal(store: Store, report: object) -> None:
    assert callable(report)
    for line in lines_of(store):
        assert CONTROL.search(str(report(line.attempt.record))) is None


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "json", "latex"])
def test_no_name_breaks_a_leaderboard(store: Store, form: str) -> None:
    text = leaderboard.render(leaderboard.leaderboard(lines_of(store)), form)
    assert CONTROL.search(text) is None
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == len(NAMES)
        assert [row["name"] for row in rows if row["name"].startswith(("=", "+", "-", "@"))] == []
    if form == "json":
        assert isinstance(json.loads(text), dict | list)
    if form == "markdown":
        assert re.search(r"(?<!\\)(?:<script|\[x\]\(|\*\*d|a \| b)", text) is None, "what is not escaped is markup"


@pytest.mark.parametrize("form", ["csv", "canvas", "moodle"])
def test_no_name_is_a_formula_in_a_gradebook(store: Store, form: str) -> None:
    text = grades.render(lines_of(store), form, title="hw4")
    assert CONTROL.search(text.replace("\r\n", "\n")) is None
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "@"))] == []
    assert [cell for cell in cells if cell.startswith("-1+1")] == []


def test_no_name_breaks_what_gradescope_and_junit_read(store: Store, rules: Assignment) -> None:
    records = [line.attempt.record for line in lines_of(store)]
    for record in records:
        said = json.dumps(gradescope.results(record, rules, hidden=lambda _: False, seconds=1), ensure_ascii=False)
        assert CONTROL.search(said) is None
    suites = ElementTree.fromstring(junit.render(records))
    assert len(suites.findall(".//testsuite")) == len(NAMES)


def test_no_name_is_markup_or_a_path_on_the_site(store: Store, tmp_path: Path) -> None:
    build_site(store, "hw4", tmp_path / "site")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(NAMES)
    for page in pages:
        tags = Tags()
        tags.feed(page.read_text(encoding="utf-8"))
        assert not [name for name in tags.seen if name.startswith("on")], page
        assert [tag for tag in tags.seen if tag.startswith("script of") and not tag.endswith("site.js")] == [], page
    assert {path.name for path in tmp_path.iterdir()} == {"site"}
    assert all(re.fullmatch(r"[\w.-]+", path.name) for path in (tmp_path / "site").rglob("*"))
