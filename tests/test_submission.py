"""What a student hands in: one file or a folder, read once, with clear words for what cannot be graded."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.course.assignment import Assignment
from grader.programs import submission
from grader.programs.submission import read_submission as read
from grader.sandbox.scratch import remove

Write = Callable[[str, str], Path]
PROGRAM = "int main() { return 0; }\n"


def test_a_source_made_to_be_searched_for_long_is_not() -> None:
    began = time.process_time()
    assert submission._MAIN.search('extern "C" ' * 200_000) is None
    assert submission._MAIN.search('extern "C" int f();\nextern "C"\nvoid solve (float *x)') is not None
    assert time.process_time() - began < 2


def test_a_single_file_brings_the_headers_it_includes_from_its_own_folder(write: Write, rules: Assignment) -> None:
    write("util.cuh", '#include "deep/more.h"\n')
    write("deep/more.h", "")
    write("unrelated.h", "")
    submission = read(write("alice.cu", '#include "util.cuh"\n#include <cstdio>\n' + PROGRAM), rules)
    assert [name for name, _ in submission.files] == ["alice.cu", "deep/more.h", "util.cuh"]
    assert submission.sources == ("alice.cu",)
    assert submission.flags == ("-O3", "-std=c++17")
    assert submission.id == "alice"


def test_a_header_outside_the_folder_is_not_taken_along(write: Write, rules: Assignment) -> None:
    write("secret.h", "")
    submission = read(write("bob/hw4.cu", '#include "../secret.h"\n' + PROGRAM), rules)
    assert [name for name, _ in submission.files] == ["hw4.cu"]


def test_a_file_called_as_everybodys_is_named_after_its_folder(write: Write, rules: Assignment) -> None:
    assert read(write("carol/hw4.cu", PROGRAM), rules).id == "carol"


def test_in_a_folder_old_versions_with_a_main_of_their_own_are_left_out_and_named(
    write: Write, rules: Assignment
) -> None:
    folder = write("dave/hw4.cu", PROGRAM).parent
    write("dave/kernels.cu", "__global__ void kernel() {}\n")
    write("dave/old.cu", PROGRAM)
    submission = read(folder, rules)
    assert submission.sources == ("hw4.cu", "kernels.cu")
    assert "old.cu is left out" in submission.notes[0]


def test_the_digest_changes_with_content_and_with_names(write: Write, rules: Assignment) -> None:
    first = read(write("a.cu", PROGRAM), rules).sha256
    assert read(write("b.cu", PROGRAM), rules).sha256 != first
    assert read(write("a.cu", PROGRAM + "\n"), rules).sha256 != first
    assert read(write("a.cu", PROGRAM), rules).sha256 == first


@pytest.mark.parametrize(
    ("files", "path", "says"),
    [
        ({}, "nothing.cu", "does not exist: give the path .* that holds one.$"),
        ({"hw4.cu": PROGRAM}, "hw5.cu", r"does not exist: give the path .* Its folder holds hw4\.cu\.$"),
        ({"a.cu": ""}, "a.cu", "is empty"),
        ({"a.cu": " \n\t\n"}, "a.cu", "is empty"),
        ({"a.py": "x"}, "a.py", "is not a .cu file"),
        ({"dir/readme.txt": "x"}, "dir", "holds no .cu file: expected hw4.cu"),
        ({"dir/HW4.CU": "x"}, "dir", r"holds no .cu file: .* HW4\.CU is not spelled \.cu\."),
        ({"dir/a.cu": PROGRAM, "dir/b.cu": PROGRAM}, "dir", "holds 2 programs .* none is called hw4.cu"),
    ],
)
def test_what_cannot_be_graded_is_said_in_one_sentence(
    write: Write, tmp_path: Path, rules: Assignment, files: dict[str, str], path: str, says: str
) -> None:
    for name, text in files.items():
        write(name, text)
    with pytest.raises(UsageError, match=says) as raised:
        read(tmp_path / path, rules)
    assert "\n" not in str(raised.value)


def test_too_much_source_is_refused_with_its_size(write: Write, rules: Assignment) -> None:
    with pytest.raises(UsageError, match=r"3,000,000 bytes, expected at most 2,097,152"):
        read(write("a.cu", "x" * 3_000_000), rules)


def test_a_file_that_is_no_text_is_read_all_the_same(tmp_path: Path, rules: Assignment) -> None:
    path = tmp_path / "binary.cu"
    path.write_bytes(b"\xff\xfe\x00\x01")
    assert read(path, rules).sources == ("binary.cu",)


@pytest.mark.parametrize("include", ["a\0b", "a" * 300, "loop", "/dev/stdin"])
def test_an_include_that_names_no_file_is_left_to_the_compiler(write: Write, rules: Assignment, include: str) -> None:
    program = write("hw4.cu", f'#include "{include}"\n' + PROGRAM)
    (program.parent / "loop").symlink_to("loop")
    assert [name for name, _ in read(program, rules).files] == ["hw4.cu"]


@pytest.mark.parametrize(
    "name", ["-optf=x.cu", "@x.cu", "$(touch x).cu", "`x`.cu", 'a".cu', "a\\.h", "a\nb.cu", "\x1b[2J.h", "\udcff.h"]
)
def test_a_file_name_that_a_compiler_could_not_be_given_is_refused(write: Write, rules: Assignment, name: str) -> None:
    folder = write("hw4.cu", PROGRAM).parent
    (folder / name).write_text("")
    with pytest.raises(UsageError, match="cannot be given to a compiler") as refused:
        read(folder, rules)
    assert str(refused.value).isprintable()


def test_honest_file_names_are_taken(write: Write, rules: Assignment) -> None:
    folder = write("hw4.cu", PROGRAM).parent
    names = ["hw4 (1).cu", "fläsh+attn@2.cu", "it's.cuh", "kernels/-x.h"]
    for name in names:
        write(name, "")
    assert {name for name, _ in read(folder, rules).files} == {"hw4.cu", *names}


def test_a_thousand_nested_folders_are_no_obstacle(
    write: Write, rules: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write("hw4.cu", PROGRAM).parent
    monkeypatch.chdir(folder)
    for _ in range(1500):
        Path("a").mkdir()
        monkeypatch.chdir("a")
    assert [name for name, _ in read(folder, rules).files] == ["hw4.cu"]
    monkeypatch.chdir("/")
    remove(folder)  # pytest's own removal recurses


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path, rules: Assignment) -> None:
    os.mkfifo(tmp_path / "hw4.cu")
    with pytest.raises(UsageError, match="not a regular file"):
        read(tmp_path / "hw4.cu", rules)


def test_a_file_of_gigabytes_is_refused_unread(write: Write, rules: Assignment) -> None:
    folder = write("hw4.cu", PROGRAM).parent
    with (folder / "huge.h").open("wb") as file:
        file.truncate(1 << 43)  # more than any memory holds
    with pytest.raises(UsageError, match="bytes, expected at most"):
        read(folder, rules)


def test_another_makefile_is_another_attempt_and_is_kept_with_the_files(write: Write, rules: Assignment) -> None:
    write("alice/hw4.cu", PROGRAM)
    rule = "hw4: hw4.cu\n\tnvcc {} -o hw4 hw4.cu\n"
    folder = write("alice/Makefile", rule.format("-O1")).parent
    first = read(folder, rules)
    write("alice/Makefile", rule.format("-O3 -use_fast_math"))
    second = read(folder, rules)
    assert (first.flags, second.flags) == (("-O1",), ("-O3", "-use_fast_math"))
    assert first.sha256 != second.sha256
    second.write_to(folder.parent / "again")
    assert read(folder.parent / "again", rules).flags == second.flags


def test_utf_16_is_told_as_what_it_is(tmp_path: Path, rules: Assignment) -> None:
    (tmp_path / "a.cu").write_bytes(f"#include <cstdio>\n{PROGRAM}".encode("utf-16"))
    with pytest.raises(UsageError, match=r"a\.cu is UTF-16 text, which no compiler reads: save it as UTF-8"):
        read(tmp_path / "a.cu", rules)


def files_of(path: Path, assignment: Assignment) -> list[str]:
    return [name for name, _ in read(path, assignment).files]


def test_a_single_file_brings_no_hidden_file_no_text_and_no_link_of_its_folder(write: Write, rules: Assignment) -> None:
    write(".private/key.h", "the key")
    write("notes.txt", "notes")
    secret = write("elsewhere/secret.h", "the secret")
    included = [".private/key.h", "notes.txt", "linked.h", "linked/secret.h", "second.h"]
    program = write("mine/hw4.cu", "".join(f'#include "{name}"\n' for name in included) + PROGRAM)
    (program.parent / "linked.h").symlink_to(secret)
    (program.parent / "linked").symlink_to(secret.parent)
    (program.parent / "second.h").hardlink_to(secret)
    submission = read(program, rules)
    assert [name for name, _ in submission.files] == ["hw4.cu"]
    assert "linked.h is left out: it is a link: submit the file itself." in submission.notes
    assert "second.h is left out: it has a second name (a hard link): a separate copy is needed." in (submission.notes)


def test_a_single_file_brings_nothing_from_a_neighbours_folder(write: Write, rules: Assignment) -> None:
    write("bob/hw4.cu", PROGRAM)
    write("bob/attention.cuh", "__global__ void attention() {}\n")
    assert files_of(write("alice.cu", '#include "bob/attention.cuh"\n' + PROGRAM), rules) == ["alice.cu"]


def test_in_a_folder_of_a_whole_class_a_single_file_is_alone(write: Write, rules: Assignment) -> None:
    write("attention.cuh", "__global__ void attention() {}\n")
    write("Makefile", "hw4: alice.cu\n\tnvcc -O1 -o hw4 alice.cu\n")
    program = write("alice.cu", '#include "attention.cuh"\n' + PROGRAM)
    submission = read(program, rules, shared_folder=True)
    assert [name for name, _ in submission.files] == ["alice.cu"]
    assert submission.flags_from == "the assignment"


def test_a_link_in_the_place_of_the_program_is_refused(write: Write, rules: Assignment) -> None:
    secret = write("secret", "the secret")
    link = secret.with_name("hw4.cu")
    link.symlink_to(secret)
    with pytest.raises(UsageError, match=r"hw4\.cu is a link: submit the file itself"):
        read(link, rules)


def test_what_a_single_file_includes_draws_from_the_submissions_limits(
    write: Write, rules: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("hw4.cu", "".join(f'#include "h{n}.h"\n' for n in range(50)) + "int main() {}\n")
    for number in range(50):
        write(f"h{number}.h", "//" + "x" * 400)
    names: list[str] = []

    def counted(folder: Path, name: str, most: int) -> bytes:
        names.append(name)
        return (folder / name).read_bytes()

    def limited(**limits: int) -> Assignment:
        return rules.model_copy(update={"submission": rules.submission.model_copy(update=limits)})

    monkeypatch.setattr("grader.programs.submission.quarantine.read_bytes", counted)
    with pytest.raises(UsageError, match="bytes of source, expected at most 2,000"):
        read(path, limited(max_bytes=2000))
    assert len(names) < 6
    with pytest.raises(UsageError, match="more than 4 files"):
        read(path, limited(max_files=4))
    assert len(names) < 12


@pytest.mark.parametrize(
    "name", ["d" * 180 + "/" + "e" * 180 + "/" + "f" * 180 + "/x.h", "é" * 110 + ".h", "d/" * 20 + "x.h"]
)
def test_a_name_has_the_same_limits_however_it_is_handed_in(write: Write, rules: Assignment, name: str) -> None:
    folder = write("alice/hw4.cu", PROGRAM).parent
    write(f"alice/{name}", "")
    with pytest.raises(UsageError, match="is too long: expected at most 400 characters, 20 folders and 200 bytes"):
        read(folder, rules)


def test_includes_are_looked_for_once_and_only_so_often(write: Write, rules: Assignment) -> None:
    flags = " ".join(f"-Ii{number}" for number in range(250))
    write("Makefile", f"hw4: hw4.cu\n\tnvcc {flags} -o hw4 hw4.cu\n")
    began = time.process_time()
    assert files_of(write("hw4.cu", '#include"q.h"\n' * 90_000 + PROGRAM), rules) == ["Makefile", "hw4.cu"]
    many = "".join(f'#include "{number}.h"\n' for number in range(90_000))
    with pytest.raises(UsageError, match="includes too many names"):
        read(write("hw4.cu", many + PROGRAM), rules)
    assert time.process_time() - began < 5


def test_programs_of_neighbours_are_read_within_one_limit(
    write: Write, rules: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        write(f"lib{number}/part.cu", "//" + "x" * 1000)
        write(f"lib{number}/part.h", "")
    program = write("hw4.cu", "".join(f'#include "lib{n}/part.h"\n' for n in range(20)) + PROGRAM)
    assert len(files_of(program, rules)) == 21
    monkeypatch.setattr("grader.programs.submission._MAX_NEIGHBOUR_BYTES", 10_020)
    assert len(files_of(program, rules)) == 11, "a folder beyond the limit counts as another submission"
