"""Archives that students submit: zip and tar, plain or compressed.

The student controls every byte of an archive. So the grader opens it with quarantine.py, which accepts only a regular
file of bounded size, and reads it in the room (room.py), which returns names and contents. It checks each member's name
as text before it takes the member: the name must be relative and printable, without `..`, and must not differ from
another member's only in case. An archive that contains links or devices is refused. Only the wanted members are read,
up to a total size that is counted while they are unpacked, because the sizes in the headers may be false.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field

from grader.base.names import printable_name
from grader.sandbox import quarantine
from grader.sandbox.quarantine import Refused
from grader.sandbox.room import Blob, Exceeded, Unreadable, confined

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
FOREIGN_SUFFIXES = (".7z", ".rar", ".gz", ".xz", ".bz2")
"""Archives and compressed files that the grader recognises but does not open."""
MAX_ARCHIVE_BYTES = 16 << 20
MAX_MEMBERS = 10_000
MAX_UNPACKED_BYTES = 64 << 20
"""Limit for a tar archive, which has to be unpacked from beginning to end, however little of it is wanted."""
MAX_NAME, MAX_DEPTH = 400, 20
MAX_PART_BYTES = 200
"""File systems allow 255 bytes, and builds append suffixes to names."""
_Name = Annotated[str, Field(max_length=MAX_NAME)]
_Files = Annotated[
    list[tuple[_Name, Annotated[Blob, Field(max_length=MAX_UNPACKED_BYTES)]]], Field(max_length=MAX_MEMBERS)
]
_LEFT_BY_SYSTEMS = {"__MACOSX", "Thumbs.db", "desktop.ini"}
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)


@dataclass(frozen=True)
class Wanted:
    """Which members to take, by suffix or by name, and how many files and bytes at most."""

    suffixes: frozenset[str]
    names: frozenset[str]
    max_files: int
    max_bytes: int

    def takes(self, name: str) -> bool:
        """Whether a member with this name is taken."""
        path = PurePosixPath(name)
        return path.suffix in self.suffixes or path.name in self.names


def is_foreign(name: str) -> bool:
    """Whether a file with this name is an archive that the grader does not open."""
    return name.lower().endswith(FOREIGN_SUFFIXES) and not is_archive(name)


def is_archive(name: str) -> bool:
    """Whether a file with this name is an archive that the grader opens."""
    return name.lower().endswith(SUFFIXES)


def without_suffix(name: str) -> str:
    """ "alice.tar.gz" → "alice"; also for archives that the grader does not open."""
    suffix = max(
        (suffix for suffix in (*SUFFIXES, *FOREIGN_SUFFIXES) if name.lower().endswith(suffix)), key=len, default=""
    )
    return name[: len(name) - len(suffix)]


def unpack(folder: Path, name: str, wanted: Wanted) -> list[tuple[str, bytes]]:
    """Return the names and contents of the wanted files in the archive `folder/name`. If all files share a top folder,
    it is cut from their names. Raises Refused."""
    content = quarantine.read_bytes(folder, name, MAX_ARCHIVE_BYTES)
    try:
        return _unpacked(content, wanted)
    except Exceeded as exceeded:
        raise Refused(f"cannot be unpacked: it {exceeded}") from None
    except Unreadable as refused:
        raise Refused(str(refused)) from None


@confined(cpu_s=30, answer_bytes=2 * MAX_UNPACKED_BYTES)
def _unpacked(content: bytes, wanted: Wanted) -> _Files:
    try:
        members = _zip(content) if content[:2] == b"PK" else _tar(content)
        return _without_common_folder(_taken(members, wanted))
    except Refused as refused:
        raise Unreadable(str(refused)) from None
    except NotImplementedError as error:
        raise Unreadable(f"uses an unsupported compression method ({error})") from error
    except RuntimeError as error:  # zipfile raises this when a password is needed
        raise Unreadable("is protected by a password") from error
    except _BROKEN as error:
        raise Unreadable(f"is not a readable archive ({printable_name(str(error))[:200]})") from error


@dataclass(frozen=True)
class _Member:
    """`read(n)` returns the first n bytes of the content. It may be called once only, before the next member is
    requested. `kind` is "file", "folder", or a phrase such as "a link"."""

    name: str
    kind: str
    read: Callable[[int], bytes]


def _taken(members: Iterable[_Member], wanted: Wanted) -> list[tuple[str, bytes]]:
    taken: dict[str, tuple[str, bytes]] = {}
    left = wanted.max_bytes
    for number, member in enumerate(members):
        if number >= MAX_MEMBERS:
            raise Refused(f"holds more than {MAX_MEMBERS:,} files")
        name = safe_name(member.name)
        if member.kind not in ("file", "folder"):
            raise Refused(f"holds {member.kind} ({printable_name(name)}): submit the files themselves")
        if member.kind == "folder" or _is_hidden(name) or not wanted.takes(name):
            continue
        same = taken.get(name.casefold())
        if same is not None:
            other = "twice" if same[0] == name else f"and {printable_name(same[0])}, the same name on many systems"
            raise Refused(f"holds {printable_name(name)} {other}")
        if len(taken) >= wanted.max_files:
            raise Refused(f"holds more than {wanted.max_files} source files")
        content = member.read(left + 1)
        left -= len(content)
        if left < 0:
            raise Refused(f"holds more than {wanted.max_bytes:,} bytes of source")
        taken[name.casefold()] = name, content
    return list(taken.values())


def safe_name(name: str) -> str:
    """A member's name as a path below the submission. Raises Refused."""
    path = PurePosixPath(name.replace("\\", "/"))
    if len(name) > MAX_NAME or len(path.parts) > MAX_DEPTH:
        raise Refused(f"holds a name that is too long ({printable_name(name[:80])}…)")
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise Refused(f"holds a name that points outside the archive ({printable_name(name)})")
    if not name.isprintable():
        raise Refused(f"holds a name with control characters ({printable_name(name)})")
    if any(len(part.encode()) > MAX_PART_BYTES for part in path.parts):
        raise Refused(f"holds a name that is too long ({printable_name(name[:80])}…)")
    return path.as_posix()


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part in _LEFT_BY_SYSTEMS for part in PurePosixPath(name).parts)


def _without_common_folder(files: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The files without the top folders that they all share: most tools pack the folder around the files too, and some
    pack that folder inside another."""
    while files and all("/" in name for name, _ in files) and len({name.partition("/")[0] for name, _ in files}) == 1:
        files = [(name.partition("/")[2], content) for name, content in files]
    return files


def _zip(content: bytes) -> Iterator[_Member]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            kind = _kind(info.external_attr >> 16) if info.create_system == 3 else "file"
            yield _Member(info.orig_filename, "folder" if info.is_dir() else kind, _read_zipped(archive, info))


def _read_zipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[int], bytes]:
    def read(most: int) -> bytes:
        with archive.open(info) as file:
            return file.read(most)

    return read


def _kind(mode: int) -> str:
    """The kind of a file with this mode. Some archives store no mode (0); their members count as files."""
    kind = stat.S_IFMT(mode)
    return {0: "file", stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "a link"}.get(kind, "a special file")


class _Counted(io.RawIOBase):
    """Passes a stream through, and refuses it beyond MAX_UNPACKED_BYTES."""

    def __init__(self, stream: io.BytesIO | gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile) -> None:
        self._stream, self._left = stream, MAX_UNPACKED_BYTES

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size if 0 <= size <= self._left else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise Refused(f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
        return data


def _tar(content: bytes) -> Iterator[_Member]:
    with _decompressed(content) as plain, tarfile.open(fileobj=_Counted(plain), mode="r|") as archive:
        for info in archive:
            archive.members = []  # type: ignore[attr-defined]  # tarfile would collect millions of them
            yield _Member(info.name, _tarred_kind(info), _read_tarred(archive, info))


def _decompressed(content: bytes) -> io.BytesIO | gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    raw = io.BytesIO(content)
    if content.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if content.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    return lzma.LZMAFile(raw) if content.startswith(b"\xfd7zXZ\0") else raw


def _tarred_kind(info: tarfile.TarInfo) -> str:
    if info.isreg() or info.isdir():
        return "file" if info.isreg() else "folder"
    return "a link" if info.issym() or info.islnk() else "a special file"


def _read_tarred(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[int], bytes]:
    def read(most: int) -> bytes:
        file = archive.extractfile(info)
        return file.read(most) if file is not None else b""

    return read
