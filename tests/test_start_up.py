"""How `grader` starts."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.course import ROOT


def test_help_waits_for_none_of_what_grading_takes() -> None:
    program = (
        "import sys\nfrom grader.commands.cli import main\n"
        "try: main(['grade', '--help'])\n"
        "finally: print('LOADED', sorted({'numpy', 'jinja2', 'pynvml', 'sqlite3'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--cluster" in done.stdout
    assert done.stdout.rstrip().endswith("LOADED []")


def test_ctrl_c_while_it_starts_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()\n")
    done = subprocess.run(
        [sys.executable, "-m", "grader", "assignments"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
