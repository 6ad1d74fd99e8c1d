"""Archives that were handed in: opened where they are honest, refused in one sentence where they are not."""

import gzip
import io
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.classes.batch import find_class, is_class
from grader.course.assignment import Assignment
from grader.gradescope import grade_there
from grader.programs.submission import read_submission as read
from grader.records.record import Record
from grader.sandbox import archive

SOURCE = b"int main() { return 0; }\n"


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members:
            made.writestr(name, content)
    return out.getvalue()


def tarred(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE, mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as made:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(content), kind, "/etc/passwd"
            made.addfile(info, io.BytesIO(content))
    return out.getvalue()


def in_zip(mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("hw4.cu")
    info.create_system, info.external_attr = 3, mode << 16
    return info


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("alice.zip", zipped(("hw4.cu", SOURCE))),
        ("alice.zip", zipped(("hw4/", b""), ("hw4/hw4.cu", SOURCE), ("__MACOSX/hw4/._hw4.cu", b"x"), ("a.pdf", b"%"))),
        ("alice.zip", zipped(("Alice Ross_7_assignsubmission_file_/hw4/hw4.cu", SOURCE))),
        ("alice.tar", tarred(("./hw4.cu", SOURCE))),
        ("alice.tar.gz", tarred(("hw4/hw4.cu", SOURCE), mode="w:gz")),
        ("alice.tgz", tarred(("hw4.cu", SOURCE), mode="w:gz")),
        ("alice.tar.xz", tarred(("hw4.cu", SOURCE), mode="w:xz")),
        ("alice.TAR.BZ2", tarred(("hw4.cu", SOURCE), mode="w:bz2")),
    ],
)
def test_an_archive_is_opened_alone_or_in_a_folder(
    name: str, content: bytes, tmp_path: Path, rules: Assignment
) -> None:
    (tmp_path / "bob").mkdir()
    for place in (tmp_path / name, tmp_path / "bob" / name):
        place.write_bytes(content)
    for path, student in ((tmp_path / name, "alice"), (tmp_path / "bob", "bob")):
        submission = read(path, rules)
        assert submission.files == (("hw4.cu", SOURCE),)
        assert (submission.id, submission.path, submission.notes) == (student, path, (f"{name} was unpacked.",))


def test_a_makefile_in_an_archive_gives_its_flags(tmp_path: Path, rules: Assignment) -> None:
    made = zipped(("x/hw4.cu", SOURCE), ("x/Makefile", b"hw4: hw4.cu\n\tnvcc -O2 -o hw4 hw4.cu\n"))
    (tmp_path / "alice.zip").write_bytes(made)
    assert read(tmp_path / "alice.zip", rules).flags == ("-O2",)


def _a_million_members() -> bytes:
    """Of a million, as their headers compress; who reads them has seen enough after the first ten thousand."""
    one = gzip.compress(tarfile.TarInfo("x").tobuf() * 10_000, 1)
    return one * 100


HOSTILE: list[tuple[str, Callable[[], bytes], str]] = [
    ("bomb.zip", lambda: zipped(("hw4.cu", bytes(8 << 20))), "holds more than 2,097,152 bytes of source"),
    ("bomb.tar.gz", lambda: tarred(("hw4.cu", bytes(8 << 20)), mode="w:gz"), "more than 2,097,152 bytes of source"),
    ("long.tgz", lambda: tarred(("data.bin", bytes(65 << 20)), ("hw4.cu", SOURCE), mode="w:gz"), "unpacks to more"),
    ("many.tgz", _a_million_members, "holds more than 10,000 files"),
    ("many.zip", lambda: zipped(*((f"{n}.txt", b"") for n in range(10_001))), "holds more than 10,000 files"),
    ("large.zip", lambda: bytes(archive.MAX_ARCHIVE_BYTES + 1), "is 16,777,217 bytes, expected at most 16,777,216"),
    ("sources.zip", lambda: zipped(*((f"{n}.cu", b"") for n in range(70))), "holds more than 68 source files"),
    ("link.zip", lambda: zipped((in_zip(stat.S_IFLNK | 0o777), b"/etc/passwd")), "holds a link"),
    ("device.zip", lambda: zipped((in_zip(stat.S_IFCHR | 0o666), b"")), "holds a special file"),
    ("link.tar", lambda: tarred(("hw4.cu", b""), kind=tarfile.SYMTYPE), "holds a link"),
    ("hard.tar", lambda: tarred(("hw4.cu", b""), kind=tarfile.LNKTYPE), "holds a link"),
    ("device.tar", lambda: tarred(("hw4.cu", b""), kind=tarfile.CHRTYPE), "holds a special file"),
    ("fifo.tar", lambda: tarred(("hw4.cu", b""), kind=tarfile.FIFOTYPE), "holds a special file"),
    ("up.zip", lambda: zipped(("../hw4.cu", SOURCE)), "outside the archive"),
    ("back.zip", lambda: zipped(("..\\hw4.cu", SOURCE)), "outside the archive"),
    ("root.tar", lambda: tarred(("/etc/hw4.cu", SOURCE)), "outside the archive"),
    ("drive.zip", lambda: zipped(("C:\\hw4.cu", SOURCE)), "outside the archive"),
    ("deep.tar", lambda: tarred(("a/" * 30 + "hw4.cu", SOURCE)), "a name that is too long"),
    ("control.zip", lambda: zipped(("\x1b[2Jhw4.cu", SOURCE)), "a name with control characters"),
    ("bytes.tar", lambda: tarred(("\udcffhw4.cu", SOURCE)), "a name with control characters"),
    ("twice.tar", lambda: tarred(("hw4.cu", SOURCE), ("hw4.cu", b"other")), "holds hw4.cu twice"),
    ("case.zip", lambda: zipped(("hw4.cu", SOURCE), ("HW4.cu", b"")), "the same name on many systems"),
    ("both.zip", lambda: zipped(("hw4.cu", SOURCE), ("hw4.cu/a.h", b"")), "a file and a folder of the same name"),
    ("cut.zip", lambda: zipped(("hw4.cu", SOURCE))[:-30], "not a readable archive"),
    ("cut.tgz", lambda: tarred(("hw4.cu", SOURCE * 99), mode="w:gz")[:-30], "not a readable archive"),
    ("text.tar", lambda: b"int main() {}" * 99, "not a readable archive"),
    ("pdf.zip", lambda: zipped(("report.pdf", b"%")), "holds no .cu file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "why"), HOSTILE, ids=[name for name, _, _ in HOSTILE])
def test_a_hostile_archive_is_refused_in_one_sentence(
    name: str, make: Callable[[], bytes], why: str, tmp_path: Path, rules: Assignment
) -> None:
    (tmp_path / name).write_bytes(make())
    began = time.monotonic()
    with pytest.raises(UsageError) as refused:
        read(tmp_path / name, rules)
    assert why in str(refused.value) and f"/{name}" in str(refused.value)
    assert "\x1b" not in str(refused.value) and "/archive" not in str(refused.value)
    assert time.monotonic() - began < 30
    assert not (tmp_path / "etc").exists() and sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_a_linked_archive_is_not_opened(tmp_path: Path, rules: Assignment) -> None:
    (tmp_path / "own.zip").write_bytes(zipped(("hw4.cu", SOURCE)))
    (tmp_path / "alice.zip").symlink_to("own.zip")
    with pytest.raises(UsageError, match="is a link"):
        read(tmp_path / "alice.zip", rules)


def test_a_class_may_hand_in_archives(tmp_path: Path, rules: Assignment) -> None:
    for name in ("alice.zip", "bob.tar.gz"):
        (tmp_path / name).write_bytes(
            zipped(("hw4.cu", SOURCE)) if name.endswith("zip") else tarred(("hw4.cu", SOURCE))
        )
    (tmp_path / "carol").mkdir()
    (tmp_path / "carol/submission.zip").write_bytes(zipped(("hw4.cu", SOURCE)))
    (tmp_path / "dave.rar").write_bytes(b"Rar!")
    (tmp_path / "erin").mkdir()
    (tmp_path / "erin/notes.txt").write_bytes(b"sorry")
    assert is_class(tmp_path, rules)
    found, notes = find_class(tmp_path, rules)
    assert [one.student for one in found] == ["alice", "bob", "carol", "dave", "erin"] and notes == []
    assert all(read(one.path, rules).files == (("hw4.cu", SOURCE),) for one in found[:3])
    with pytest.raises(UsageError, match="cannot be opened"):
        read(found[3].path, rules)


# ---- names that are not as the handout asks -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention.cu", "HW4.cu", "hw4_final.cu"])
def test_another_name_is_graded_with_a_note(name: str, tmp_path: Path, rules: Assignment) -> None:
    (tmp_path / name).write_bytes(SOURCE)
    note = f"{name} is graded, but the handout asks for hw4.cu: rename your file."
    for path in (tmp_path, tmp_path / name):
        assert read(path, rules).notes == (note,)
    assert read(tmp_path / name, rules, any_name=True).notes == ()
    assert read(tmp_path / name, rules, shared_folder=True).notes == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hw4.cpp", "hw4.cpp must be called hw4.cu."),
        ("hw4.cu.txt", "hw4.cu.txt must be called hw4.cu."),
        ("hw4.CU", "hw4.CU is not spelled .cu."),
        ("work.rar", "work.rar is an archive that cannot be opened: hand in a zip, or hw4.cu."),
        ("report.pdf", "It holds report.pdf."),
    ],
)
def test_what_was_found_instead_is_named_with_what_to_do(
    name: str, said: str, tmp_path: Path, rules: Assignment
) -> None:
    (tmp_path / name).write_bytes(SOURCE)
    with pytest.raises(UsageError) as refused:
        read(tmp_path, rules)
    assert "holds no .cu file" in str(refused.value) and str(refused.value).endswith(said)


def test_gradescope_is_told_no_path_of_the_container(tmp_path: Path, rules: Assignment) -> None:
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission/hw4.cu.txt").write_bytes(SOURCE)

    def grade(path: Path) -> Record:
        read(path, rules)
        raise AssertionError

    results = grade_there(tmp_path, rules, grade, lambda name: False)
    assert results["output"].startswith("your submission holds no .cu file: expected hw4.cu there;")
    assert str(tmp_path) not in (tmp_path / "results/results.json").read_text()

    def fails(path: Path) -> Record:
        raise OSError("/autograder/source/grader/x.py cannot be read; see /tmp/a/b/log.txt.")

    said = grade_there(tmp_path, rules, fails, lambda name: False)["output"]
    assert "OSError: x.py cannot be read; see log.txt." in said
