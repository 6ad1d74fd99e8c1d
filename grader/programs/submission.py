"""A student's files: one .cu file, or a folder with several and perhaps a Makefile.

The grader grades a snapshot: the contents of the files, read once and identified by a SHA-256 over names and contents.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from grader.base.errors import UsageError
from grader.base.names import printable_name, student_id
from grader.base.paths import shown
from grader.course.assignment import Assignment
from grader.cpp.source import line_of
from grader.programs.compiler_calls import SOURCES
from grader.programs.makefile import MakefileFlags, read_cmake_flags, read_makefile_flags
from grader.programs.python_main import SUFFIX, find_python_main
from grader.sandbox import archive, quarantine, runner
from grader.sandbox.scratch import scratch_folder
from grader.sandbox.walk import files_below, is_regular

CODE = SOURCES | {".cuh", ".h", ".hpp", ".hh", ".hxx", ".inl", ".inc", ".tpp", ".cu_inl"}
"""The suffixes of the sources and headers that a CUDA submission may contain."""
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_MAIN = re.compile(r"\bmain\s*\(|extern\s+\"C\"(?:(?!extern)[^;{}])*\bsolve\s*\(")
"""The function in which a program begins, or that a function submission defines. No text is searched twice."""
_MAX_NOTES = 5
_MAX_INCLUDES = 2000
_MAX_LOOKUPS = 20_000
"""Pairs of an included name and a folder in which it may be; all other limits are reached much earlier."""
_MAX_NEIGHBOUR_BYTES = 32 << 20
"""Bytes of other programs that are read to find out whose folder a file is in."""
_SPECIAL = re.compile(r'["$`\\]')
"""Characters that are special to a shell within double quotes."""
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_MAX_READ_BYTES = 4 << 20
_MAKE_LIMIT_S = 10
_CMAKELISTS = "CMakeLists.txt"
_ASSIGNMENT = "the assignment"
"""The origin of flags that do not come from a Makefile."""


@dataclass(frozen=True)
class Submission:
    """The files handed in, named relative to the submission's folder, with the sources and flags to compile.

    `sources` are the translation units among `files`; `flags_from` names the origin of `flags`.
    """

    id: str
    path: Path
    files: tuple[tuple[str, bytes], ...]
    sources: tuple[str, ...]
    flags: tuple[str, ...]
    flags_from: str
    notes: tuple[str, ...]
    sha256: str

    @property
    def is_python(self) -> bool:
        return bool(self.sources) and self.sources[0].endswith(
            SUFFIX
        )  # a submission that cannot be read has no sources

    def line(self, file: str, number: int) -> str:
        return line_of(self.files, file, number)

    def with_files(self, files: tuple[tuple[str, bytes], ...]) -> Submission:
        """The submission with other contents, and so another digest, by which builds are kept."""
        return replace(self, files=files, sha256=_digest(files))

    def write_to(self, folder: Path) -> None:
        """Write the files into `folder`."""
        for name, content in self.files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


class _Neighbours:
    """Tells which folders next to a submission hold another one. All reads draw from one limit of bytes."""

    def __init__(self) -> None:
        self._left, self._known = _MAX_NEIGHBOUR_BYTES, dict[Path, bool]()

    def is_submission(self, folder: Path) -> bool:
        """Whether a program or a Makefile is directly in the folder; a folder beyond the limit counts as one."""
        if folder not in self._known:
            self._known[folder] = self._look(folder)
        return self._known[folder]

    def _look(self, folder: Path) -> bool:
        try:
            names = sorted(entry.name for entry in folder.iterdir())
        except (OSError, ValueError):
            return False
        if any(name in MAKEFILES for name in names):
            return True
        for name in names:
            if name.endswith(".cu"):
                self._left -= min(_size(folder / name), _MAX_READ_BYTES)
                if self._left < 0 or is_program(folder, name):
                    return True
        return False


class _Files:
    """Reads files of one submission, each once; all reads together draw from its limits of files and bytes."""

    def __init__(self, path: Path, folder: Path, assignment: Assignment) -> None:
        self.folder, self._path, self._rules = folder, path, assignment.submission
        self._read: dict[str, bytes] = {}
        self._bytes = 0

    def __getitem__(self, name: str) -> bytes:
        """The content of a regular file. Raises quarantine.Refused, and UsageError beyond a limit."""
        if name not in self._read:
            content = quarantine.read_bytes(self.folder, name, self._rules.max_bytes)
            self._bytes += len(content)
            if self._bytes > self._rules.max_bytes:
                raise UsageError(
                    f"{shown(self._path)} is at least {self._bytes:,} bytes of source, expected at most "
                    f"{self._rules.max_bytes:,}: hand in source code only."
                )
            self._read[name] = content
            if len(self._read.keys() - {*MAKEFILES, _CMAKELISTS}) > self._rules.max_files:
                raise UsageError(
                    f"{shown(self._path)} consists of more than {self._rules.max_files} files, with what it includes: "
                    "hand in only the files of this assignment."
                )
        return self._read[name]


def read_submission(
    path: Path, assignment: Assignment, *, shared_folder: bool = False, any_name: bool = False
) -> Submission:
    """Read the submission at `path`: a file, a folder or an archive. Its flags come from its Makefile, if it has one.
    `shared_folder`: the folder of a single file also holds other students' files, which are not part of the submission.
    `any_name`: the program may have another name than the handout asks for. Raises UsageError if there is nothing to
    grade."""
    if not path.exists():
        near = [file.name for file in path.parent.glob("*") if file.suffix in (".cu", SUFFIX)]
        there = f" Its folder holds {printable_name(', '.join(sorted(near)[:_MAX_NOTES]))}." if near else ""
        raise UsageError(
            f"{shown(path)} does not exist: give the path of a .cu file or of a folder that holds one.{there}"
        )
    packed = _archive_of(path)
    submission = _read(path, assignment, shared_folder) if packed is None else _opened(packed, path, assignment)
    note = "" if any_name or shared_folder else _other_name(submission, assignment)
    return replace(submission, notes=(*submission.notes, note)) if note else submission


def unreadable(student: str, path: Path, problem: str) -> Submission:
    """A placeholder for a submission that cannot be read; its digest is that of `problem`, which says why."""
    digest = hashlib.sha256(f"unreadable\0{problem}".encode(errors="replace")).hexdigest()
    return Submission(student, path, (), (), (), _ASSIGNMENT, (), digest)


def _other_name(submission: Submission, assignment: Assignment) -> str:
    """A note if the program does not have the name that the handout asks for and no Makefile names it; otherwise ''."""
    mains = [name for name in assignment.submission.mains if name.endswith(SUFFIX) == submission.is_python]
    if submission.flags_from != _ASSIGNMENT or mains[0] in submission.sources:
        return ""
    if any(submission.path.resolve().is_relative_to(folder.resolve()) for folder in assignment.reference_folders):
        return ""
    return f"{submission.sources[0]} is graded, but the handout asks for {mains[0]}: rename your file."


def _archive_of(path: Path) -> Path | None:
    """The archive that was handed in: the file itself, or the only archive in a folder that holds no .cu file."""
    if path.is_file():
        return path if archive.is_archive(path.name) else None
    packed = [file for file in files_below(path) if archive.is_archive(file.name) and not file.name.startswith(".")]
    if len(packed) != 1 or any(file.suffix in (".cu", SUFFIX) for file in files_below(path)):
        return None
    return packed[0]


def _opened(packed: Path, path: Path, assignment: Assignment) -> Submission:
    """The submission in an archive. It is unpacked into a temporary folder, where none of its files is run."""
    rules, makefiles = assignment.submission, frozenset((*MAKEFILES, _CMAKELISTS))
    most = rules.max_files + len(makefiles)
    wanted = archive.Wanted(frozenset(CODE | {SUFFIX}), makefiles, most, rules.max_bytes)
    try:
        files = archive.unpack(packed.parent, packed.name, wanted)
    except quarantine.Refused as refused:
        raise UsageError(f"{shown(packed)} {refused}.") from refused
    with scratch_folder("archive") as folder:
        for name, content in files:
            try:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                problem = f"{shown(packed)} holds a file and a folder of the same name: {printable_name(name)}."
                raise UsageError(problem) from None  # with an error of the system as its cause, it is the machine's
        try:
            inside = _read(folder, assignment, shared_folder=False)
        except UsageError as error:
            raise UsageError(str(error).replace(shown(folder), shown(packed))) from error
    note = f"{printable_name(packed.name)} was unpacked."
    return replace(inside, id=_identity(path, assignment), path=path, notes=(note, *inside.notes))


def _read(path: Path, assignment: Assignment, shared_folder: bool) -> Submission:
    if (python := find_python_main(path, assignment)) is not None:
        return read_python(*python, path, assignment)
    if path.is_dir():
        names, files_of = _files_in(path, assignment), _Files(path, path, assignment)
        _check_names(path, names)
        made = _makefile_flags(files_of, names, assignment)
        sources, notes = _chosen_sources(files_of, names, assignment, made)
    elif path.suffix == ".cu":
        files_of, names, notes = _Files(path, path.parent, assignment), [path.name], []
        if not shared_folder:
            names, notes = _with_local_headers(path.name, files_of)
        _check_names(path, names)
        sources = [path.name]
        made = None if shared_folder else _makefile_flags(files_of, names, assignment)
        if made is not None and path.name not in made.sources:
            made = None
        if made is not None and (include_folders := made.include_folders):
            names, notes = _with_local_headers(path.name, files_of, include_folders)
            _check_names(path, names)
    else:
        main = assignment.submission.main
        if archive.is_foreign(path.name):
            raise UsageError(f"{shown(path)} is an archive that cannot be opened: hand in a zip, or {main}.")
        raise UsageError(f"{shown(path)} is not a .cu file: rename it to {main} if it is your program.")

    if made is not None:  # a Makefile determines the program, so a submission with another Makefile is another attempt
        names = [*names, *_makefiles_in(files_of.folder)]
    files = tuple((name, _content(files_of, name)) for name in sorted(names))
    if all(not content.strip() for name, content in files if name in sources):
        raise UsageError(f"{shown(path)} is empty: expected CUDA source code; save your work into it.")
    for name, content in files:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and "#include" in content.decode(
            "utf-16", "replace"
        ):
            raise UsageError(f"{shown(path)}: {name} is UTF-16 text, which no compiler reads: save it as UTF-8.")
    flags = made.flags if made is not None else assignment.build.default_flags
    origin = f"the submission's {made.origin}" if made is not None else _ASSIGNMENT
    notes += [f"{made.origin}: {note}." for note in made.notes] if made is not None else []
    return _submission(path, assignment, files, sources, notes, flags, origin)


def _submission(
    path: Path,
    assignment: Assignment,
    files: tuple[tuple[str, bytes], ...],
    sources: Iterable[str],
    notes: Iterable[str],
    flags: tuple[str, ...] = (),
    flags_from: str = _ASSIGNMENT,
) -> Submission:
    id = _identity(path, assignment)
    return Submission(id, path, files, tuple(sources), flags, flags_from, tuple(notes), _digest(files))


def read_python(main: Path, notes: Iterable[str], path: Path, assignment: Assignment) -> Submission:
    """Read the Python submission at `path`, whose file is `main`."""
    files = ((main.name, _content(_Files(path, main.parent, assignment), main.name)),)
    _check_names(path, [main.name])
    if not files[0][1].strip():
        raise UsageError(f"{shown(main)} is empty: expected a Python program; save your work into it.")
    return _submission(path, assignment, files, (main.name,), notes)


def _files_in(folder: Path, assignment: Assignment) -> list[str]:
    """The names of sources and headers below `folder`, without hidden folders and links."""
    names = []
    for path in files_below(folder):
        suits = path.suffix in CODE and not path.name.startswith(".")
        if suits and is_regular(path):
            names.append(path.relative_to(folder).as_posix())
        if len(names) > assignment.submission.max_files:
            raise UsageError(
                f"{shown(folder)} holds more than {assignment.submission.max_files} source files: "
                "hand in only the files of this assignment."
            )
    if not any(name.endswith(".cu") for name in names):
        mains = assignment.submission.mains
        kinds = " or ".join(sorted({Path(main).suffix for main in mains}))
        raise UsageError(
            f"{shown(folder)} holds no {kinds} file: expected {' or '.join(mains)} there; "
            f"give the folder that holds it, or the file itself.{_found_instead(folder, assignment)}"
        )
    return names


def _found_instead(folder: Path, assignment: Assignment) -> str:
    """A sentence on what a folder without a .cu file holds, and on which file may be the program."""
    found = [path for path in sorted(files_below(folder)) if not path.name.startswith(".")]
    main = assignment.submission.main
    for path in found:
        name, lower = printable_name(path.relative_to(folder).as_posix()), path.name.lower()
        if path.suffix.lower() == ".cu":
            kind = (
                "a link" if path.is_symlink() else "not a regular file" if not is_regular(path) else "not spelled .cu"
            )
            return f" {name} is {kind}."
        if path.suffix == SUFFIX:
            return f" {name} is in Python, which {assignment.name} does not accept."
        foreign = archive.is_foreign(lower)
        if foreign or ".cu." in lower or lower.startswith(f"{Path(main).stem}.") or path.suffix in SOURCES:
            said = "is an archive that cannot be opened: hand in a zip, or" if foreign else "must be called"
            return f" {name} {said} {main}."
    if not found:
        return " It is empty."
    names = ", ".join(printable_name(path.relative_to(folder).as_posix()) for path in found[:_MAX_NOTES])
    return f" It holds {names}{f' and {len(found) - _MAX_NOTES} more' if len(found) > _MAX_NOTES else ''}."


def _chosen_sources(
    files_of: _Files, names: list[str], assignment: Assignment, made: MakefileFlags | None
) -> tuple[list[str], list[str]]:
    """The translation units of a folder: those that the Makefile names; without one, the main file and every other .cu
    that has no `main` function (old versions and experiments have one)."""
    if made is not None:
        wanted = dict.fromkeys(posixpath.normpath(source) for source in made.sources)
        if named := [name for name in wanted if name in names]:
            missing = [printable_name(name) for name in wanted if name not in names]
            return named, [f"{name} is left out: the submission holds no such file." for name in missing[:_MAX_NOTES]]
    units = sorted(name for name in names if Path(name).suffix == ".cu")
    with_main = [name for name in units if _MAIN.search(_content(files_of, name).decode(errors="replace"))]
    main = assignment.submission.main
    if main not in units:
        if len(with_main) > 1:
            listed = ", ".join(with_main[:5]) + (", …" if len(with_main) > 5 else "")
            raise UsageError(
                f"{shown(files_of.folder)} holds {len(with_main)} programs ({listed}) and none is called {main}: give "
                f"the right file, or rename it to {main}; if they are submissions of a class: `grader grade --class`."
            )
        return units, []
    others = [name for name in with_main if name != main]
    notes = [f"{name} is left out: like {main}, it has a main function." for name in others]
    return [name for name in units if name not in others], notes


def _check_names(path: Path, names: Iterable[str]) -> None:
    """Refuse file names that a compiler or a shell would misread. nvcc starts its tools through a shell, with names in
    double quotes, and takes a file called `-optf=x.cu` for an option. gcc takes `@x.cu` for a request to read options
    from x.cu."""
    for name in names:
        parts = name.split("/")
        longest = max(len(os.fsencode(part)) for part in parts)
        if len(name) > archive.MAX_NAME or len(parts) > archive.MAX_DEPTH or longest > archive.MAX_PART_BYTES:
            raise UsageError(
                f"{printable_name(str(path))}: the file name '{printable_name(name[:40])}…' is too long: expected at "
                f"most {archive.MAX_NAME} characters, {archive.MAX_DEPTH} folders and {archive.MAX_PART_BYTES} bytes "
                "for each; rename it."
            )
        if not name.isprintable() or _SPECIAL.search(name) or name.startswith(("-", "@")):
            raise UsageError(
                f"{printable_name(str(path))}: the file name '{printable_name(name)}' cannot be given to a compiler: "
                "expected letters, digits and common punctuation, and no leading - or @; rename it."
            )


def _with_local_headers(
    source: str, files_of: _Files, include_folders: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """(names, notes): the file and all files that it includes, directly or not, from its own folder and from
    `include_folders` below it; and notes on includes that were left out."""
    folder = files_of.folder
    names, notes = {source}, list[str]()
    waiting, tried, lookups = [source], set[str](), 0
    is_submission = _Neighbours().is_submission
    include_folders = [each for each in include_folders if len(each) <= archive.MAX_NAME]
    while waiting:
        current = waiting.pop()
        for quote, name_bytes in dict.fromkeys(_INCLUDE.findall(_content(files_of, current))):
            if len(name_bytes) > archive.MAX_NAME:
                continue
            included = name_bytes.decode(errors="replace")
            places = [posixpath.dirname(current)] if quote == b'"' else []
            for place in (*places, *include_folders):
                lookups += 1
                if lookups > _MAX_LOOKUPS or len(tried) > _MAX_INCLUDES:
                    raise UsageError(f"{shown(folder / source)} includes too many names: hand in the folder instead.")
                name = posixpath.normpath(posixpath.join(place, included))
                if name in names:
                    break
                if name in tried or not _may_come_along(folder, name, is_submission):
                    continue
                tried.add(name)
                try:
                    content = files_of[name]
                except quarantine.Refused as refused:
                    if not refused.missing:
                        notes.append(f"{printable_name(name)} is left out: it {refused}.")
                    continue
                a_program = PurePosixPath(name).suffix in SOURCES and _MAIN.search(content.decode(errors="replace"))
                if name not in names and not a_program:  # a file with its own `main` may be another student's program
                    names.add(name)
                    waiting.append(name)
                break
    return sorted(names), list(dict.fromkeys(notes))[:_MAX_NOTES]


def _may_come_along(folder: Path, name: str, is_submission: Callable[[Path], bool]) -> bool:
    """Whether an included file is part of the submission: it must be a source file or header, not be hidden, and be
    inside `folder`, but not in a subfolder that is itself a submission."""
    path = PurePosixPath(name)
    if (
        len(path.parts) > archive.MAX_DEPTH
        or path.is_absolute()
        or path.suffix not in CODE
        or any(part.startswith(".") for part in path.parts)
    ):
        return False
    return not any(is_submission(folder / parent) for parent in list(path.parents)[:-1])


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def is_program(folder: Path, name: str, *, unread: bool = False) -> bool:
    """Whether a file is a CUDA source with a main function; `unread` is the answer for a file that cannot be read."""
    if not name.endswith(".cu"):
        return False
    try:
        return _MAIN.search(quarantine.read_text(folder, name, _MAX_READ_BYTES)) is not None
    except quarantine.Refused:
        return unread


def _makefile_flags(files_of: _Files, names: Iterable[str], assignment: Assignment) -> MakefileFlags | None:
    """Flags from the submission's Makefile, or from its CMakeLists.txt if no Makefile runs nvcc. make evaluates what
    the student wrote, such as $(shell …), so it runs in a copy that holds only the Makefile and the submission's files
    `names`."""
    makefiles, run = _makefiles_in(files_of.folder), runner(_MAKE_LIMIT_S)
    if not makefiles:
        return None
    main = assignment.submission.main
    with scratch_folder("make") as copy:
        for name in (*names, *makefiles):
            content = _content(files_of, name)
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(content)
        if makefiles != [_CMAKELISTS] and (made := read_makefile_flags(copy, Path(main).stem, run)) is not None:
            return made
        if _CMAKELISTS not in makefiles:
            return None
        return read_cmake_flags(_content(files_of, _CMAKELISTS).decode(errors="replace"), main, copy)


def _makefiles_in(folder: Path) -> list[str]:
    return [name for name in (*MAKEFILES, _CMAKELISTS) if is_regular(folder / name)]


def _content(files_of: _Files, name: str) -> bytes:
    """The content of a regular file. Raises UsageError for another one, and beyond the submission's limits."""
    try:
        return files_of[name]
    except quarantine.Refused as refused:
        text = f"{shown(files_of.folder / name)} {refused}; hand in source code only, in regular files."
        cause = refused.__cause__
        ours = isinstance(cause, OSError) and cause.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT)
        raise UsageError(text) from (cause if ours else refused)


def _identity(path: Path, assignment: Assignment) -> str:
    """The student's id: the name of the file or folder, or of the file's folder if the file has the name that the
    handout asks for."""
    resolved = path.resolve()
    named_by_folder = resolved.name in assignment.submission.mains
    stem = archive.without_suffix(resolved.name) if archive.is_archive(resolved.name) else resolved.stem
    return student_id(resolved.parent.name if named_by_folder else stem if resolved.is_file() else resolved.name)


def _digest(files: tuple[tuple[str, bytes], ...]) -> str:
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
