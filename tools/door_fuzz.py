"""`python -m tools.door_fuzz`: random inputs for the door to hostile files and for every parser of untrusted bytes.

Each input is one of a parser's seeds, honest text from tests/fixtures or written here, changed at random: bytes are
flipped, pieces cut, repeated, exchanged with another seed's or with words that parsers heed. A parser may refuse it
with the exceptions that its callers expect, within seconds. Every other outcome is reported with its input; the exit
code is then 1. The door gets folders of files, links and pipes made at random, and must never give out what lies
outside.

The targets whose names begin with `room-` are confined functions, called as the grader calls them: their outcome is a
value or `Unreadable`, within limits that the room enforces. With them go whole stores and records, which the commands
and reports for them then read; those of `values` are well-formed, with values that their types allow and no grader
writes.

`--inputs`, `--seconds` and `--minutes` end a run, `--seed` repeats one, `--only trace` names a target.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from cudaemu.nvcc import read_registers
from cudaemu.ptx import PtxSyntaxError, parse
from cudaemu.translation import missing_functions, read_object, translate
from grader.base.errors import UsageError
from grader.base.names import printable_name, spelled_out
from grader.base.yaml_text import read_yaml
from grader.commands import classroom
from grader.course.assignment import SourceRule
from grader.findings import short_kernel
from grader.profiling import ncu
from grader.programs import compiler_calls, makefile
from grader.programs import source_rules as rules
from grader.programs.trace import read_received
from grader.records.record import Record, read_records
from grader.report import terminal
from grader.report.explain import explain
from grader.sandbox import archive, quarantine, room
from grader.sandbox.room import Unreadable
from grader.sanitizers.log import parse_report
from grader.sanitizers.text import render
from grader.site.annotate import PLACE
from grader.timing import evidence
from tests.support.records import made_recheck, made_record, made_test

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures"
MOST_BYTES = 20_000
PATIENCE_S = 10
"""The processor time for one input: hundreds of times that of the slowest honest input."""
_STUCK_S = 120
"""The wall time, for parsers that wait instead of computing."""

_PTX = b"""\
.version 9.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 scale_param_0, .param .f32 scale_param_1)
.maxntid 256, 1, 1
{
 .reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<5>; .reg .b64 %rd<4>;
 .shared .align 4 .b8 tile[1024];
 .loc 1 3 5
 ld.param.u64 %rd1, [scale_param_0];
 mov.u32 %r1, %tid.x;
 setp.ge.s32 %p1, %r1, 1000;
 @%p1 bra $L__BB0_2;
 mul.wide.s32 %rd2, %r1, 4;
 add.s64 %rd3, %rd1, %rd2;
 ld.global.f32 %f1, [%rd3+16];
 fma.rn.f32 %f2, %f1, 0f3F800000, %f1;
 st.global.f32 [%rd3], %f2;
 bar.sync 0;
$L__BB0_2:
 ret;
}
.file 1 "hw4.cu"
.global .align 4 .b8 table[16] = {1, 2, 3, 4};
"""
_PTXAS = b"""\
ptxas info    : Compiling entry function 'scale' for 'sm_80'
ptxas info    : Function properties for scale
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem, 364 bytes cmem[0]
"""
_MAKE = (
    b'nvcc -O3 -std=c++17 -Iinclude -I ../other -DTILE=32 -DNAME=\\"x\\" -Xcompiler -Wall,-O2 -arch=sm_80 hw4.cu\n'
    b"ccache nvcc -Xptxas -v -lineinfo '-I`touch x`' kernels/a.cu && echo done; mkdir -p build\n"
)
_CMAKE = b"""\
project(hw4 LANGUAGES CXX CUDA)
set(SOURCES hw4.cu kernels/a.cu)  # a comment
add_executable(hw4 ${SOURCES})
target_compile_options(hw4 PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-O3 --use_fast_math>)
target_include_directories(hw4 PRIVATE ${CMAKE_SOURCE_DIR}/include ../other)
"""
_SOURCE = b"""\
#include <cstdio>
#include "util.cuh"
#line 3 "other.cu"
// a comment, "a text"
/* another */ __global__ void k(float *x) { asm volatile("nop;"); x[0] = R"y(raw)y"[0]; }
#define RUN(x) sys##tem(x)
int main() { char c = '"'; return system("ls"); } \\
"""
_PREPROCESSED = b"""\
# 1 "hw4.cu"
# 1 "/usr/include/dlfcn.h" 1 3 4
extern void *dlopen(const char *, int);
# 2 "hw4.cu" 2
int main() { asm("." "incbin \\"x\\""); return system("ls"); }
"""
_YAML = b"title: x\nlimits:\n  wall_s: [{tests: t01..t10, seconds: 2}]\n  memory: 1e9\nbase: &a {x: 1}\nmore: *a\n"
_JSON = b'{"created": "2026", "tests": [{"name": "t01", "shape": [1, 2], "verdict": "passed"}], "x": 1e999}'
_LOG = b"hw4.cu(12): error: x is undefined\nhw4.cu:3:5: warning: unused\nld: undefined reference to `f'\n"
_LOG += b"ld: undefined reference to `cudaGLSetGLDevice'\n"
_OBJECT = b"\x7fELF cudaMemcpy_ptds __cudaRegisterLinkedBinary_x cudaMemcpyAsync_ptsz"
_WORDS = (
    *(bytes([number]) for number in b"\0\n\"'\\`#{}[]()<>,:;=\t\xff"),
    *(b"\r\n", b"\\\n", b"$(x)", b"/*", b"*/", b"//", b'R"(', b')"', b"#/*\n", b"??/\n", b"&a ", b"*a", b"- ", b"../"),
    *(b"/etc/passwd", b"-I", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\x1b[2J", b"\xe2\x80\xae", b"9" * 20, b"-1"),
    *(b"1e999", b"NaN", b"0x", b"_Z", b" " * 300, b"(" * 300, b"[" * 3000, b"a" * 300, b"null", b"true", b"asm "),
    *(b"include ", b"========= ", b"kind"),
)
_RULES = (
    SourceRule(forbid="header", names=("dlfcn.h",), why="no"),
    SourceRule(forbid="call", names=("system", "cublas*"), why="no"),
    SourceRule(forbid="incbin", why="no"),
    SourceRule(forbid="absolute_include", why="no"),
    SourceRule(forbid="inline_assembly", why="no"),
)


@dataclass(frozen=True)
class Target:
    """A parser: its seeds, the function that reads an input, and the exceptions by which it refuses one."""

    name: str
    seeds: tuple[bytes, ...]
    read: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...] = ()
    most_bytes: int = MOST_BYTES
    each: int = 1
    """It is tried once in so many turns."""


class Broken(Exception):
    """The parser let something through that it must not."""


class Hang(BaseException):
    """An input took longer than PATIENCE_S."""


def _trace(text: bytes) -> None:
    trace = read_received(io.BytesIO(text))
    evidence.doubts(trace, evidence.Witness("cuda", 1.0, 1.0, 1000, ((1, 2),)))
    _ = trace.gpu_ns, trace.copy_ns, trace.idle_ns, trace.kernel_summaries()


def _ncu(text: bytes) -> None:
    for launch in ncu.parse_csv(text.decode(errors="replace")):
        short_kernel(launch.kernel)


def _sanitizer(text: bytes) -> None:
    render([parse_report("memory", text.decode(errors="replace")), parse_report("race", text.decode(errors="replace"))])


def _make(text: bytes) -> None:
    said = text.decode(errors="replace")
    every = compiler_calls.calls(said)
    kept = [call.words for call in compiler_calls.program_calls(every, "hw4")] or [call.words for call in every]
    made = [
        makefile.sort_flags(kept, (Path("/nowhere"), Path("/nowhere"))),
        makefile.read_cmake_flags(said, "hw4.cu", Path("/nowhere")),
    ]
    for flag in (flag for each in made if each is not None for flag in each.flags):
        if any(sign in flag.replace('\\"', "") for sign in "`$") or (flag.startswith("-I") and ".." in flag.split("/")):
            raise Broken(f"the flag {flag!r} is kept")


def _rules(text: bytes) -> None:
    rules._embedded((("hw4.cu", text),), _RULES)
    places = rules.Places(Path("/nowhere"), Path("/usr"))
    lines = list(rules.own_lines(io.StringIO(text.decode(errors="replace")), places))
    list(rules.judge(lines, _RULES))


def _names(text: bytes) -> None:
    said = spelled_out(text.decode(errors="surrogateescape"))
    if "\x1b" in said or "\n" in printable_name(said):
        raise Broken("a control character is left")
    said.encode()
    list(PLACE.finditer(said))


def _in_a_file(read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def in_a_file(text: bytes) -> object:
        with tempfile.NamedTemporaryFile(prefix="door-fuzz-") as file:
            file.write(text)
            file.flush()
            return read(Path(file.name))

    return in_a_file


def _room_ptx(text: bytes) -> None:
    room.read(translate, [_file(text)], prefix="m0", below="/nowhere", lanes=8)


def _file(text: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile(prefix="door-fuzz-")  # noqa: SIM115 (closed when it is collected)
    file.write(text)
    file.seek(0)
    return file


def _room_archive(text: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="door-fuzz-") as folder:
        (Path(folder) / "hw4.zip").write_bytes(text)
        wanted = archive.Wanted(frozenset({".cu", ".h"}), frozenset(), 10, MOST_BYTES)
        files = archive.unpack(Path(folder), "hw4.zip", wanted)
    if sum(len(content) for _, content in files) > MOST_BYTES or len(files) > 10:
        raise Broken("more was unpacked than was wanted")


def _archives() -> tuple[bytes, ...]:
    """Small zip and tar files."""
    made = []
    for mode in ("w", "w:gz", "w:xz"):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode) as tar:
            info = tarfile.TarInfo("hw4/hw4.cu")
            info.size = len(_SOURCE)
            tar.addfile(info, io.BytesIO(_SOURCE))
        made.append(out.getvalue())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("hw4/hw4.cu", _SOURCE)
        packed.writestr("hw4/util.h", b"// nothing")
    return (*made, out.getvalue())


def _store(text: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="door-fuzz-") as folder:
        path = Path(folder) / "class.sqlite"
        path.write_bytes(text)
        _commands(path, "leaderboard", "gradebook")


def _commands(path: Path, *commands: str) -> None:
    """Read a changed store as commands of the staff read it."""
    for command in commands:
        words = [sys.executable, "-m", "grader", *command.split(), "--store", str(path), "--assignment", "hw4"]
        done = subprocess.run(words, capture_output=True, timeout=_STUCK_S, check=False)
        said = done.stdout + done.stderr
        if b"Traceback" in said or b"this is a bug" in said or b"\x1b" in said or done.returncode not in (0, 1, 2):
            raise Broken(f"{command} ended with {done.returncode}: {said[-600:]!r}")


_VALUES: tuple[Any, ...] = (
    "",
    "x" * 400,
    "../../x",
    "\x1b[2J",
    "\u202e",
    "2026-01-01",
    "hw4",
    "t21",
    "a\nb",
    True,
    None,
)
_VALUES += ([], 0, -1, 0.5, 1e308, -1e308, 1e-308, 2**63 - 1, {})


def _values(text: bytes) -> None:
    """A record with some other values, chosen by the input, through its reports and a class's commands."""
    dice = random.Random(text)
    tests = [made_test("s01"), made_test("t21", gpu_ms=2.0, speedup=500.0), made_test("t22", gpu_ms=3.0, speedup=400.0)]
    content = made_record(tests=tests, recheck=made_recheck(["t21", "t22"])).model_dump(mode="json", by_alias=True)
    for _ in range(dice.randrange(4)):
        place, key = dice.choice(list(_places(content)))
        place[key] = dice.choice(_VALUES)
    changed_text = json.dumps(content).encode()
    record = Record.model_validate_json(changed_text)
    _record(changed_text)
    with tempfile.TemporaryDirectory(prefix="door-fuzz-") as folder:
        path = Path(folder) / "class.sqlite"
        classroom.keep([record, made_record("bob")], path)
        _commands(path, "leaderboard", "gradebook", f"site {folder}/site")


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Where single values are: a mapping or a list, and the key."""
    for key, value in list(content.items() if isinstance(content, dict) else enumerate(content)):
        if isinstance(value, dict | list) and value:
            yield from _places(value)
        else:
            yield content, key


def _stores() -> tuple[bytes, ...]:
    """A store with one graded submission."""
    with tempfile.TemporaryDirectory(prefix="door-fuzz-") as folder:
        path = Path(folder) / "class.sqlite"
        classroom.keep([made_record()], path)
        with sqlite3.connect(path) as raw:
            raw.execute("PRAGMA journal_mode = DELETE")
        return (path.read_bytes(),)


def _record(text: bytes) -> None:
    """A record that may be valid, through every report of a single one."""
    with tempfile.TemporaryDirectory(prefix="door-fuzz-") as folder:
        path = Path(folder) / "record.json"
        path.write_bytes(text)
        for record in read_records(path):
            for said in (explain(record), terminal.render(record, verbose=True)):
                spelled_out(said).encode()


def _fixtures(folder: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes()[:MOST_BYTES] for path in sorted((FIXTURES / folder).iterdir()))


TARGETS = (
    Target("trace", _fixtures("trace"), _trace),
    Target("ptx", (_PTX,), lambda text: parse(text.decode(errors="replace")), (PtxSyntaxError,)),
    Target("ptxas", (_PTXAS,), lambda text: room.read(read_registers, text.decode(errors="replace")), (Unreadable,)),
    Target("ncu", _fixtures("ncu"), _ncu),
    Target("sanitizer", _fixtures("sanitizer"), _sanitizer),
    Target("makefile", (_MAKE, _CMAKE), _make),
    Target("rules", (_SOURCE, _PREPROCESSED), _rules),
    Target("names", (_LOG, _SOURCE), _names),
    Target("yaml", (_YAML,), _in_a_file(read_yaml), (UsageError,)),
    Target("json", (_JSON,), _in_a_file(read_records), (UsageError,)),
    Target("record", (made_record().model_dump_json(by_alias=True).encode(),), _record, (UsageError,)),
    Target("room-ptx", (_PTX,), _room_ptx, (Unreadable,)),
    Target("room-archive", _archives(), _room_archive, (quarantine.Refused,)),
    Target("room-object", (_OBJECT,), lambda text: room.read(read_object, _file(text)), (Unreadable,)),
    Target(
        "room-link", (_LOG,), lambda text: room.read(missing_functions, text.decode(errors="replace")), (Unreadable,)
    ),
    Target("store", _stores(), _store, most_bytes=1 << 20, each=100),
    Target("values", (b"honest",), _values, (ValueError, UsageError), each=100),
)


def changed(dice: random.Random, seeds: Sequence[bytes], most_bytes: int = MOST_BYTES) -> bytes:
    """A seed with some changes."""
    text = bytearray(dice.choice(seeds))
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        at = dice.randrange(len(text) + 1)
        size = min(dice.choice((1, 4, 40, 400)), len(text) - at)
        match dice.randrange(6):
            case 0:
                text[at : at + size] = b""
            case 1:
                text[at:at] = dice.choice(_WORDS) * dice.choice((1, 1, 3, 50))
            case 2:
                text[at : at + 1] = bytes([dice.randrange(256)])
            case 3:
                text[at:at] = bytes(text[at : at + size]) * dice.choice((1, 2, 20))
            case 4:
                other = dice.choice(seeds)
                start = dice.randrange(len(other) + 1)
                text[at:at] = other[start : start + size]
            case _:
                text = text[: at + size]
        del text[most_bytes:]
    return bytes(text)


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    def out_of_patience(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = [(number, signal.signal(number, out_of_patience)) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
    signal.setitimer(signal.ITIMER_REAL, _STUCK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)


def try_one(target: Target, text: bytes) -> str:
    """A phrase on what `target` does wrong with the input; '' if nothing."""
    try:
        with _patience():
            target.read(text)
    except target.refuses:
        return ""
    except Hang:
        return f"it took longer than {PATIENCE_S} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


SECRET = b"outside of every folder"


def try_door(dice: random.Random, place: Path) -> str:
    """Read names from a random folder; return a phrase on anything that must not have come through the door, or ''."""
    place = place.resolve()
    folder, names = place / "folder", ["a", "b", "c", "a/a", "a/b", "b/a", "a/b/c"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (place / "secret").write_bytes(SECRET)
    for name in sorted(dice.sample(names, 5), key=len):
        path = folder / name
        if os.path.realpath(path.parent) != str(path.parent) or not path.parent.is_dir() or os.path.lexists(path):
            continue  # new entries must lie in the folder itself
        with contextlib.suppress(OSError):
            match dice.randrange(7):
                case 0:
                    path.mkdir()
                case 1:
                    path.write_bytes(b"inside")
                case 2:
                    path.symlink_to(
                        dice.choice(("/", "..", "../secret", "../../secret", "a", "b", "/dev/zero", str(place)))
                    )
                case 3:
                    path.hardlink_to(place / "secret")
                case 4:
                    os.mkfifo(path)
                case 5:
                    path.write_bytes(b"inside")
                    path.chmod(0)
                case _:
                    os.mknod(path, 0o600)
    parts = ["a", "b", "c", "..", ".", "secret", "", "\0", "x" * 300, "proc/self/environ"]
    for _ in range(8):
        name = "/".join(dice.choices(parts, k=dice.choice((1, 2, 2, 3, 4))))
        try:
            with _patience():
                content = quarantine.read_bytes(folder, name, 100)
        except quarantine.Refused:
            continue
        except Hang:
            return f"reading {name!r} did not end"
        except Exception as error:
            return f"reading {name!r}: {type(error).__name__}: {error}"
        if content not in (b"", b"inside"):
            return f"reading {name!r} gave {content!r}"
    return ""


def fuzz(inputs: int, seconds: float, seed: int, only: Sequence[str] = ()) -> tuple[int, list[str]]:
    """Return (inputs tried, findings) for at most `inputs` inputs and `seconds` seconds, over all targets by turns."""
    dice, found = random.Random(seed), list[str]()
    targets = [target for target in TARGETS if not only or target.name in only]
    with_door = not only or "door" in only
    until, done = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory(prefix="door-fuzz-") as place:
        while done < inputs and time.monotonic() < until and len(found) < 20:
            for target in targets:
                if dice.randrange(target.each):
                    continue
                text = changed(dice, target.seeds, target.most_bytes)
                done += 1
                if wrong := try_one(target, text):
                    found.append(f"{target.name}: {wrong}\n  input: {text[:2000]!r}")
            if with_door:
                done += 1
                if wrong := try_door(dice, Path(place)):
                    found.append(f"door: {wrong}")
    return done, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.door_fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    began = time.monotonic()
    done, found = fuzz(options.inputs, 60 * options.minutes if options.minutes else options.seconds, seed, options.only)
    for finding in found:
        print(finding)
    print(f"{done:,} inputs in {time.monotonic() - began:.0f} s, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
