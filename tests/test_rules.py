"""Source rules: found in the student's own lines of preprocessed source, whatever macros and comments do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cudaemu.process import Completed
from grader.base.errors import MachineFault
from grader.course.assignment import Assignment, SourceRule
from grader.programs import source_rules
from grader.programs.engine import select_engine
from grader.programs.source_rules import Places, own_lines, violations
from grader.programs.submission import read_submission

Write = Callable[[str, str], Path]
ENGINE = select_engine("emulator", "sm_80")
RULES = (
    SourceRule(forbid="header", names=("dlfcn.h", "cutlass/*"), why="write it yourself"),
    SourceRule(forbid="call", names=("system", "exec*"), why="no other programs", action="warn"),
    SourceRule(forbid="incbin", why="compute the answer"),
    SourceRule(forbid="absolute_include", why="your own files only"),
    SourceRule(forbid="inline_assembly", why="CUDA C++ only", action="warn"),
)


@pytest.fixture
def broken(hw4: Assignment, write: Write) -> Callable[..., list[str]]:
    """What breaks the rules in a program, as 'file:line what'."""

    def look(source: str, **headers: str) -> list[str]:
        path = write("hw4.cu", source)
        for name, text in headers.items():
            write(f"{name}.h", text)
        rules = hw4.model_copy(update={"source_rules": RULES})
        found = violations(read_submission(path, rules), rules, ENGINE)
        return [f"{each.file}:{each.line} {each.what}" for each in found]

    return look


def in_headers(broken: Callable[..., list[str]], *sources: str) -> list[list[str]]:
    """What breaks the rules in each of these headers of one program, as 'line what'."""
    headers = {f"header{number}": text for number, text in enumerate(sources)}
    found = broken("".join(f'#include "{name}.h"\n' for name in headers) + "int main() {}\n", **headers)
    assert all(each.startswith("header") for each in found)
    return [[each.removeprefix(f"{name}.h:") for each in found if each.startswith(f"{name}.h:")] for name in headers]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("#include <cstdio>\n#include <dlfcn.h>\nint main() {}\n", ["hw4.cu:2 includes dlfcn.h"]),
        ('#include <cstdlib>\nint main() {\n  return system("ls");\n}\n', ["hw4.cu:3 calls system"]),
        ("#include <cstdlib>\n#define RUN(x) sys##tem(x)\nint main() { RUN(0); }\n", ["hw4.cu:3 calls system"]),
        ('int main() { asm volatile("nop"); }\n', ["hw4.cu:1 has inline assembly"]),
        ('#include "/usr/include/time.h"\nint main() {}\n', ["hw4.cu:1 includes /usr/include/time.h"]),
        ("#include <linux/../dlfcn.h>\nint main() {}\n", ["hw4.cu:1 includes dlfcn.h"]),
    ],
)
def test_what_is_forbidden_is_found_with_its_line(
    broken: Callable[..., list[str]], source: str, expected: list[str]
) -> None:
    assert broken(source) == expected


def test_incbin_is_found_however_it_is_written(broken: Callable[..., list[str]]) -> None:
    sources = (
        '\nasm(".in" "cbin \\"x\\"");\n',
        '\nasm("\\056incbin \\"x\\"");\n',
        '\nasm(".INCBIN \\"x\\"");\n',
        '\nasm(".inc"' + '\n""' * 20 + '\n"bin x");\n',
        '\nasm(R"-(.i)-" "\\u006e"\nR"(cbin x)");\n',
    )
    assert all("2 has .incbin in a string" in found for found in in_headers(broken, *sources))


def test_a_backslash_before_a_digit_that_is_not_octal_hides_nothing(broken: Callable[..., list[str]]) -> None:
    found = broken(r'const char* nine = "\9"; asm("\056incbin \"x\"");')
    assert any("has .incbin in a string" in each for each in found)


def test_a_line_of_a_raw_string_is_no_marker_of_the_preprocessor(broken: Callable[..., list[str]]) -> None:
    hidden = 'const char *x = R"(END# 1 "/usr/include/stdio.h" 3END)";\nint main() { return system("ls"); }\n'
    ends = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\u2028")
    for end, found in zip(ends, in_headers(broken, *(hidden.replace("END", end) for end in ends)), strict=True):
        assert any("calls system" in each for each in found), repr(end)


ELSEWHERE = '"/usr/include/stdlib.h"'


@pytest.mark.parametrize(
    "directive",
    [
        f"\ufeff#line 1 {ELSEWHERE}",
        f"\0#line 1 {ELSEWHERE}",
        f"#\0line 1 {ELSEWHERE}",
        f"/* *\\\n/ #line 1 {ELSEWHERE}",
        f"%:line 1 {ELSEWHERE}",
        f"%\\\n:line 1 {ELSEWHERE}",
        f"??=line 1 {ELSEWHERE}",
        f"# /* *\\\n/ line 1 {ELSEWHERE}",
        f"# 1 {ELSEWHERE} 3",
        f"# 1 {ELSEWHERE} 1 3 4",
        f'_Pragma("GCC system_header")\n#line 1 {ELSEWHERE}',
        f'const char *x = R"(\r# 1 {ELSEWHERE} 3\r)";\n# 1 {ELSEWHERE}',
        f"#define WHERE {ELSEWHERE}\n#line 1 WHERE",
        '#line 1 "<command-line>"',
        '#line 1 "<built-in>"',
        '# 1 "<built-in>" 1',
        '#line 1 "//"',
    ],
)
def test_no_directive_takes_lines_out_of_what_is_looked_at(broken: Callable[..., list[str]], directive: str) -> None:
    found = broken(f'{directive}\n#include <dlfcn.h>\nint main() {{ system("x"); }}\n')
    said = [each.partition(" ")[2] for each in found]
    assert {"includes dlfcn.h", "calls system"} <= set(said)
    if not directive.startswith("??="):  # where trigraphs are off, this is text
        assert any("as the origin of its lines" in each or each == "includes /usr/include/stdlib.h" for each in said)


def test_a_line_of_a_raw_string_takes_no_text_away(broken: Callable[..., list[str]]) -> None:
    lines = ('# 1 "hw4.cu")"; system("x"); auto b = R"(', '# 1 ")"\nint a = system("x"); auto b = R"(')
    for line in (*lines, '# 1 "<built-in>" 3'):
        found = broken(f'int main() {{ auto a = R"(\n{line}\n)"; }}\n')
        assert any("as the origin of its lines" in each for each in found)


def test_a_name_split_by_a_line_directive_is_still_a_violation(broken: Callable[..., list[str]]) -> None:
    [found] = broken('int main() { system\n#line 1 "x.h"\n("x"); }\n')
    assert found == "hw4.cu:2 names x.h as the origin of its lines"


def test_a_programs_own_file_and_folders_of_any_name_are_its_own(
    broken: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "J\u00f6rg x"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    source = '#include <cstdio>\n#include "mine.h"\n#line 7 __FILE__\nint main() {}\n'
    assert broken(source, mine='#include <dlfcn.h>\nvoid f() { system("x"); }\n') == [
        "mine.h:1 includes dlfcn.h",
        "mine.h:2 calls system",
    ]


def test_a_preprocessor_that_does_not_work_is_the_machines_and_is_not_kept(
    broken: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = '#include <cstdlib>\nint main() { return system("ls not kept"); }\n'
    with monkeypatch.context() as without:
        without.setattr("grader.sandbox.runner", lambda *_, **__: lambda *_: Completed(1, "cc1plus: not found", 0.1))
        with pytest.raises(MachineFault, match="not even on an empty file: cc1plus: not found"):
            broken(source)
    assert broken(source) == ["hw4.cu:2 calls system"]


def test_comments_strings_and_what_the_toolkit_does_accuse_nobody(broken: Callable[..., list[str]]) -> None:
    source = (
        "#include <cstdlib>\n#include <cuda_fp16.h>  // its functions are assembly\n"
        '// system("ls"), #include <dlfcn.h>\n/*\n#include "/etc/passwd"\n*/\n'
        'const char* text = "system(1) asm(2)";\nvoid my_system(int) {}\nint main() { my_system(1); }\n'
    )
    assert broken(source) == []


def test_a_header_of_the_students_own_is_searched_too(broken: Callable[..., list[str]]) -> None:
    found = broken('#include "mine.h"\nint main() {}\n', mine="#pragma once\n#include <dlfcn.h>\n")
    assert found == ["mine.h:2 includes dlfcn.h"]


def test_a_violation_is_a_sentence_and_says_whether_it_is_refused(hw4: Assignment, write: Write) -> None:
    path = write("hw4.cu", "#include <dlfcn.h>\nint main() {}\n")
    rules = hw4.model_copy(update={"source_rules": RULES})
    [violation] = violations(read_submission(path, rules), rules, ENGINE)
    assert violation.refused
    assert str(violation) == "hw4.cu:1 includes dlfcn.h, which this assignment forbids: write it yourself."


def test_a_rule_that_lacks_its_names_is_refused() -> None:
    with pytest.raises(ValueError, match="forbid: call needs names"):
        SourceRule(forbid="call", why="x")


def test_a_call_is_found_however_it_is_hidden(broken: Callable[..., list[str]]) -> None:
    """Each in a header of one program."""
    sources = [
        'int main() { system\n("x"); }\n',
        'int main() { (system)("x"); }\n',
        'int main() { return 0>system("x"); }\n',
        "int main() { char c = '\"'; system(\"x\"); char d = '\"'; }\n",
        "int main() { wchar_t c = L'\"'; system(\"x\"); c = L'\"'; }\n",
        "int main() { int c = 1'0; system(\"x\"); c = 1'0; }\n",
        'int main() { auto c = R"(")"; system("x"); c = R"(")"; }\n',
        'template<class T> int system(T); int main() { system<const char *>("x"); }\n',
        'template<class T> int g(T); int main() { g<int>(0); int x(system("x")); }\n',
        "#define SYS (system)\nint main() { return SYS(nullptr); }\n",
        'int main() { ::system("x"); }\n',
        '#line 1 "/usr/include/x.h"\nint main() { system("x"); }\n',
        '/* a\n*/ # /**/ l\\\nine 1 "/usr/include/x.h"\nint main() { system("x"); }\n',
        '%: 1 "/usr/include/x.h" 1\nint main() { system("x"); }\n',
        '#ifndef __CUDA_ARCH__\nint main() { system("x"); }\n#endif\n',
        '#ifdef __CUDA_ARCH__\nint f() { system("x"); }\n#endif\nint main() {}\n',
    ]
    for source, found in zip(sources, in_headers(broken, *sources), strict=True):
        own = [each for each in found if "as the origin of its lines" not in each]
        assert own and own[0].endswith("calls system"), source


def test_members_and_longer_names_are_no_calls(broken: Callable[..., list[str]]) -> None:
    source = (
        "struct S { int count; };\nint f(S s, int b, int c) { int executor = 1; return s.count < b && executor > (c); }"
    )
    assert broken(source + "\nint main() {}\n") == []


def test_a_finding_has_a_bounded_size(broken: Callable[..., list[str]]) -> None:
    name = "exec" + "x" * 100_000
    found = broken(f"int {name}(int);\nint main() {{ return {name}(1); }}\n")
    assert found and all(len(each) < 500 for each in found)


def test_strings_over_several_lines_and_digit_separators_accuse_nobody(broken: Callable[..., list[str]]) -> None:
    source = "const char* text = R\"x(\nsystem(1);\n)\" asm(2))x\";\nint main() { return 1'000 - int('(') - 1'000; }\n"
    assert broken(source) == []


def test_assembly_and_includes_are_found_in_any_spelling(broken: Callable[..., list[str]]) -> None:
    sources = 'int main() { asm volatile\n("nop"); }\n', '%:include "/usr/include/time.h"\n'
    assert in_headers(broken, *sources) == [["1 has inline assembly"], ["1 includes /usr/include/time.h"]]


def test_what_is_too_long_to_look_at_is_said(broken: Callable[..., list[str]]) -> None:
    [found] = broken('#include "many.h"\n' * 51 + "int main() {}\n", many=";\n" * 10_000)
    assert "has more than 500,000 lines" in found


@pytest.mark.parametrize("piece", ["/*", '\\"', "\\'", 'R"(', "asm\n", '"', "*/ #"])
def test_a_file_of_beginnings_alone_is_looked_through_at_once(broken: Callable[..., list[str]], piece: str) -> None:
    source = "\"'" + piece * (250_000 // len(piece))
    assert all("the preprocessor" in found for found in broken(f"int main() {{}}\n{source}\n"))


def test_a_file_made_to_take_hours_is_given_up_and_refused_and_not_looked_at_again(
    hw4: Assignment, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = hw4.build.model_copy(update={"limit_s": 1})  # of processor time for all commands and calls together
    rules = hw4.model_copy(update={"source_rules": RULES, "build": build})
    path = write("hw4.cu", "int main() {}\nint system;" + "f(a,b)," * 280_000)
    [found] = violations(read_submission(path, rules), rules, ENGINE)
    assert "examining it took more than 1 s of processor time" in found.what
    monkeypatch.setattr(source_rules, "_look", None)
    assert violations(read_submission(path, rules), rules, ENGINE) == (found,)


def test_an_absolute_include_is_found_over_continued_lines(broken: Callable[..., list[str]]) -> None:
    for directive in ("#in\\\nclude ", "# \\\n include ", "#include \\  \n", "/\\\n* */ #include "):
        assert "hw4.cu:2 includes /etc/passwd" in broken(f'{directive}"/etc/passwd"\nint main() {{}}\n')


def test_an_absolute_include_is_found_behind_a_macro(broken: Callable[..., list[str]]) -> None:
    assert broken("#define HEADER <cstdio>\n#include HEADER\nint main() {}\n") == []
    source = '#define HEADER "/etc/group"\n#include HEADER\nint main() {}\n'
    assert broken(source) == ["hw4.cu:2 includes /etc/group"]


def test_what_the_build_sees_is_what_is_looked_at(broken: Callable[..., list[str]]) -> None:
    source = (
        '#include <stdlib.h>\n#if __CUDA_ARCH_LIST__ == 800\nint f() { return system("x"); }\n#endif\nint main() {}\n'
    )
    assert broken(source) == ["hw4.cu:3 calls system"]


def test_a_line_marker_of_thousands_of_digits_is_a_line_of_text() -> None:
    places = Places(Path("/own"), Path("/headers"))
    text = ['# 1 "/own/hw4.cu"', "# " + "9" * 5000 + ' "/own/hw4.cu"', "int x;"]
    found = [(line.file, line.number) for line in own_lines(text, places) if not line.named]
    assert found == [("hw4.cu", 1), ("hw4.cu", 2)]


@pytest.mark.parametrize(
    "spelled",
    ["cub/device/../device/../device/../device/x.cuh", "./cub//x.cuh", "cub/a/b/c/d/e/f/x.cuh", "thrust/../cub/x.cuh"],
)
def test_a_header_is_matched_by_where_it_is_however_its_path_is_spelled(spelled: str) -> None:
    assert source_rules._matching_header(spelled, ("cub/*",))
    assert not source_rules._matching_header(spelled, ("thrust/*",))
