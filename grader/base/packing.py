"""Makes zip files whose bytes depend only on their content."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

_LEFT_OUT = ("__pycache__", ".egg-info", ".pyc", ".so", ".git", ".venv", ".swp", "~", ".DS_Store")
_EPOCH = (2020, 1, 1, 0, 0, 0)


def files_below(folder: Path) -> Iterator[Path]:
    """The files below `folder`, sorted, except files that running, installing or editing the code leaves behind."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.endswith(_LEFT_OUT) for part in path.relative_to(folder).parts):
            yield path


def packed(content: Mapping[str, bytes]) -> bytes:
    """A zip of these files. Scripts, the files that begin with #!, are executable in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in sorted(content.items()):
            info = zipfile.ZipInfo(name, _EPOCH)
            script = data.startswith(b"#!")
            info.external_attr = (stat.S_IFREG | (0o755 if script else 0o644)) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(info, data)
    return out.getvalue()
