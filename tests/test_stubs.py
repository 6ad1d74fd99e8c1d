"""The grader's stand-ins for the CUDA samples' helper headers do what the samples rely on."""

import shutil
from pathlib import Path

from tests.support.command_line import grader
from tests.support.course import ROOT


def test_arguments_images_files_timers_and_checks_work(tmp_path: Path) -> None:
    (tmp_path / "project" / "data").mkdir(parents=True)
    (tmp_path / "project" / "data" / "numbers.txt").write_text("1 2\n2.5")
    shutil.copy(ROOT / "tests/fixtures/stubs/helpers.cu", tmp_path / "project")
    (tmp_path / "elsewhere").mkdir()
    said = grader("run", "../project/helpers.cu", "--engine", "emulator", cwd=tmp_path / "elsewhere")
    assert said.out == "", said.out
    assert said.code == 1, said.err
    assert "project" not in said.err and "helpers.cu:57: a stray free: cudaErrorInvalidValue" in said.err
    assert "helpers.cu:60: cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyHostToDevice) failed: 1" in said.err
