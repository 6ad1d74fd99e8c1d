"""Makes the pictures of README.md from a real run: a report on the terminal, and the page of the same program.

    python -m tools.pictures [--into docs/pictures]

The program is reference/hw4/naive.cu without one barrier, graded on the emulator. Needs Chromium for the page.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.report.colour import coloured
from grader.report.terminal import WIDTH

ROOT = Path(__file__).parents[1]
PROMPT = "$ grader check hw4.cu"
BARRIER = "partial[threadIdx.x + half]);\n        __syncthreads();\n"
PAGE = "1000,1150"
"""Width and height of the page's picture, in pixels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "pictures")
    into: Path = parser.parse_args().into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    source = (ROOT / "reference/hw4/naive.cu").read_text()
    assert BARRIER in source, "naive.cu has another reduction: name another line to leave out"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "alice"
        folder.mkdir()
        (folder / "hw4.cu").write_text(source.replace(BARRIER, BARRIER.splitlines(keepends=True)[0]))
        said = grader("check", "hw4.cu", folder=folder)
        (into / "check.svg").write_text(drawn(f"{PROMPT}\n{said}"))
        grader("grade", ".", "--tests", "public", "--html", "page.html", folder=folder)
        photograph(folder / "page.html", into / "page.png")
    for picture in ("check.svg", "page.png"):
        print(f"{into / picture}: {(into / picture).stat().st_size:,} bytes")


def grader(command: str, path: str, *options: str, folder: Path) -> str:
    """What the command prints. Its exit code does not matter: `check` ends with 1 when a test fails."""
    words = [sys.executable, "-m", "grader", command, path, "--engine", "emulator", "--assignment", "hw4", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"grader {command} failed:\n{done.stderr}")
    return done.stdout


def drawn(text: str) -> str:
    """The text as a terminal shows it, as SVG."""
    console = Console(record=True, width=WIDTH + 2, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text.from_ansi(coloured(text.rstrip())))
    return console.export_svg(title="alice", clear=False)


def photograph(page: Path, picture: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("Chromium is missing: apt install chromium (make test-site does it).")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={PAGE}"]
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [chromium, *options, f"--user-data-dir={profile}", f"--screenshot={picture}", page.as_uri()],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    main()
