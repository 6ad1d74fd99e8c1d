"""The pages, read as files: what they show to whom, that they need nothing but themselves, and that they are whole."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.base.verdict import Verdict
from grader.classes.final_points import Line
from grader.records.record import FloorRecord
from grader.sandbox.room import Unreadable
from grader.site import build_site, class_site, report_page
from grader.site.annotate import Message, annotated, breakable, code, linked, messages_of
from grader.site.charts import Bar, Point, bars, scatter
from grader.site.record_page import report_of
from grader.store import open_store
from tests.site.made_class import LOG, SOURCE, fill, made_store, timed_test
from tests.support.records import made_record, made_test

VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """A strict reader: it keeps links and text, and notices tags that do not match."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.open, self.links, self.scripts = path, list[str](), list[str](), list[str]()
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))
        assert self.open == [], f"{path}: not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.links += [value for name in ("href", "src") if (value := named.get(name))]
        if tag == "script":
            self.scripts.append(named.get("src") or "inline")
        if tag not in VOID and tag != "!doctype":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{self.path}: </{tag}> without a beginning"
        assert self.open.pop() == tag, f"{self.path}: </{tag}> closes another"

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    store = made_store(folder / "class.sqlite", 10)
    build_site(store, "hw4", folder / "out")
    store.close()
    return folder / "out"


def pages(site: Path) -> list[Page]:
    return [Page(path) for path in site.rglob("*.html")]


def test_every_page_is_well_formed_and_every_link_leads_somewhere_in_the_site(site: Path) -> None:
    assert len(pages(site)) == 2 + 10 + 1 + 1, "two indices, 10 students, a second attempt, a model"
    for page in pages(site):
        for link in page.links:
            target = link.partition("#")[0]
            if target and not target.startswith("data:"):
                assert (page.path.parent / target).resolve().is_file(), f"{page.path.name}: {link}"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*"):
        if path.is_file():
            assert not re.search(r"(https?:)?//[a-z]", path.read_text().replace("<!doctype", ""), re.I), path


def test_public_pages_name_no_student_and_do_not_lead_to_their_pages(site: Path) -> None:
    index = Page(site / "public/index.html")
    assert "nick5" in index.text
    assert not re.search(r"\bs0\d\d\b|Student \d", index.text)
    assert not any("students" in link for link in index.links)
    assert sorted(path.name for path in (site / "public").iterdir()) == [
        "index.html",
        "site.js",
        "students",
        "style.css",
    ]


def test_assistants_see_everybody_and_where_their_pages_are(site: Path) -> None:
    index = Page(site / "assistants/index.html")
    assert "s005" in index.text and "Student 5" in index.text
    assert len({link for link in index.links if "students/" in link}) == 11
    assert re.search(r"does not build \(1\).*Student 9 s009: It does not compile.*Gradebook", index.text, re.S)
    assert (site / "assistants/links.csv").read_text().splitlines()[1].startswith("s000,Student 0,,students/")


def test_a_student_sees_score_reasons_manual_points_history_and_annotated_source(site: Path) -> None:
    links = dict(line.split(",")[::3] for line in (site / "assistants/links.csv").read_text().splitlines()[1:])
    first = Page(site / "public" / links["s000"])
    assert "8.5" in first.text and "Clear & short." in first.text
    assert "attempt-1.html" in first.links
    broken = Page(site / "public" / links["s009"])
    assert "The program was not built" in broken.text
    assert re.search(r"int main\(\) \{ return 0 \}\s*error: expected a ';'", broken.text)


def test_what_students_wrote_is_text_and_never_markup(site: Path) -> None:
    for page in pages(site):
        assert all(script.endswith("site.js") for script in page.scripts), page.path
    assert "<script>alert('x')</script> & \"co\"" in Page(site / "public/index.html").text


def test_the_leaderboard_has_its_marked_rows(site: Path) -> None:
    text = Page(site / "public/index.html").text
    assert "flash2 (model solution)" in text
    assert "sequential C (CPU baseline)" in text


def test_pages_bear_the_assignments_title_and_say_once_what_holds_for_all(site: Path) -> None:
    public, staff = Page(site / "public/index.html").text, Page(site / "assistants/index.html").text
    assert "Flash attention" in public and "Flash attention" in staff
    assert public.count("NVIDIA H200") == 1 and "driver 580.1" in public
    assert "Not entered or not measured for anybody yet: speedup, occupancy." in staff


def test_an_older_site_is_replaced_with_its_secret_paths_and_other_files_are_not(tmp_path: Path) -> None:
    with open_store(tmp_path / "store", create=True) as store:
        fill(store, 2)
        build_site(store, "hw4", tmp_path / "out")
        names = {path.name for path in (tmp_path / "out/public/students").iterdir()}
        assert len(names) == 3 and all(re.fullmatch(r"[\w-]{22}", name) for name in names)
        (tmp_path / "out/public/stale.html").touch()
        build_site(store, "hw4", tmp_path / "out")
        assert not (tmp_path / "out/public/stale.html").exists()
        assert {path.name for path in (tmp_path / "out/public/students").iterdir()} == names
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine/thesis.tex").touch()
        with pytest.raises(UsageError, match="mine holds files that are not a site"):
            build_site(store, "hw4", tmp_path / "mine")
    assert (tmp_path / "mine/thesis.tex").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["mine", "out"]


def test_one_record_is_one_page_without_other_files(tmp_path: Path) -> None:
    path = tmp_path / "alice.html"
    path.write_text(report_page([made_record("alice")]), encoding="utf-8")
    page = Page(path)
    assert page.links == ["data:,", "#content"]
    assert "1 of 2 tests passed" in page.text
    assert "It failed: wrong_answer." in page.text


def test_the_share_of_the_floor_is_shown_and_explained_where_it_is_known() -> None:
    floor = FloorRecord(ms=1.0, refuse_below_ms=0.9, limit="memory", terms=(), share=0.25)
    record = made_record(tests=[made_test("t21", gpu_ms=4.0, speedup=9.0, floor=floor)])
    assert "25%</td>" in report_page([record])
    assert "100% is the fastest possible" in report_page([record])
    assert "of floor" not in report_page([made_record(speedups=[3.0])])


def test_a_page_leads_with_verdict_and_points_then_with_what_to_do() -> None:
    cause = "hw4.cu:2: attend wrote past the end of `o` (4 bytes, allocated at hw4.cu:3)."
    failed = [made_test(name, Verdict.RUNTIME_ERROR, reason=cause, cause=cause) for name in ("t01", "t02")]
    report = report_of(made_record(tests=[*failed, made_test("t03")]), [("hw4.cu", SOURCE.encode())])
    assert report.verdict == ("bad", "1 of 3 tests passed")
    assert [(step.about, step.sentence, step.detail) for step in report.steps] == [("t01, t02", cause, "")]
    assert linked(cause, report.sources).startswith('<a href="#file1-2">hw4.cu:2</a>: attend wrote')
    assert "past the end of <code>o</code> (4 bytes" in linked(cause, report.sources)
    assert breakable("ada.king@x-y.org<") == "ada.<wbr>king@<wbr>x-<wbr>y.<wbr>org&lt;"
    assert code("`<b>` & `") == "<code>&lt;b&gt;</code> &amp; `"
    said = {line.number: [message.text for message in line.messages] for line in report.sources[0].lines}
    assert said == {1: [], 2: [f"t01, t02: {cause}"], 3: ["t01, t02: see hw4.cu:2"]}, "one cause, one paragraph"
    fine = report_of(made_record(tests=[timed_test("t23", (100, 4096, 32), slowness=4)]))
    assert fine.verdict == ("good", "The test passed")
    assert [step.about for step in fine.steps] == ["t23"], "farthest from the floor"
    lost = report_of(made_record(tests=[made_test("t01", Verdict.GRADER_ERROR, reason="The GPU was lost.")]))
    assert lost.verdict[0] == "warn"
    assert lost.steps[0].sentence == "Not your fault: the machine's. The GPU was lost."


def test_a_source_is_open_around_its_messages_and_folded_elsewhere() -> None:
    message = Message("hw4.cu", 50, "error", "expected a ';'")
    (file,) = annotated([("hw4.cu", b"x;\n" * 99)], [message])
    assert [(shown, lines[0].number, lines[-1].number) for shown, lines in file.pieces] == [
        (False, 1, 45), (True, 46, 54), (False, 55, 100),
    ]  # fmt: skip


def test_messages_stand_at_the_lines_they_are_about() -> None:
    build = {"ok": False, "log": LOG, "seconds": 1, "flags": [], "flags_from": "us", "cached": False}
    messages = messages_of(made_record(build=build))
    assert [(message.line, message.kind) for message in messages] == [(3, "error"), (2, "warning")]
    (file,) = annotated((("hw4.cu", SOURCE.encode()),), messages)
    assert [line.number for line in file.lines if line.messages] == [2, 3]
    gcc = "src/x.cpp:7:3: warning: unused variable"
    build["log"] = gcc
    (message,) = messages_of(made_record(build=build))
    assert (message.file, message.line, message.kind) == ("src/x.cpp", 7, "warning")


def test_charts_title_every_mark_and_are_empty_without_data() -> None:
    chart = bars([Bar("t21", 3, "t21: <3>")], label="l", x_label="x", y_label="y")
    assert "<title>t21: &lt;3&gt;</title>" in chart
    assert bars([], label="l", x_label="x", y_label="y") == ""
    assert scatter([Point(1, 0, "zero has no logarithm")], label="l", x_label="x", y_label="y") == ""
    assert scatter([Point(5, 5, "one")], label="l", x_label="x", y_label="y").count("<circle") == 1


def test_control_characters_and_turned_writing_in_a_source_are_spelled_out() -> None:
    (file,) = annotated((("hw4.cu", "int a; // \x1b[2J\u202e\r\nint b;".encode()),), ())
    assert [line.text for line in file.lines] == ["int a; // \\x1b[2J\\u202e", "int b;"]


def test_a_page_that_cannot_be_drawn_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(line: Line, *_: object) -> str:
        if line.attempt.student.id == "s003":
            raise Unreadable("takes more memory than 2 GiB")
        return "<html></html>"

    monkeypatch.setattr(class_site, "draw_student", drawn)
    store = made_store(tmp_path / "class.sqlite", 5)
    built = build_site(store, "hw4", tmp_path / "out")
    assert any("s003's attempt 1 is left out: it takes more memory than 2 GiB" in note for note in built.notes)
    assert len(list((tmp_path / "out").glob("public/students/*/index.html"))) == built.students - 1
