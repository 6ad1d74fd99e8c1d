"""Applies --arch, which chooses the GPU that the emulator stands for."""

from __future__ import annotations

from typing import get_args

from grader.base.errors import UsageError
from grader.course.assignment import Assignment, EmulatedArchitecture


def emulating(arch: str | None, rules: Assignment, engine: str) -> tuple[Assignment, str]:
    """The assignment with its `emulator_target` replaced by `arch`, and the emulator as the engine; without `arch`,
    both unchanged. Raises UsageError for an unknown architecture, and for engine `cuda`."""
    if arch is None:
        return rules, engine
    known = get_args(EmulatedArchitecture)
    if arch not in known:
        raise UsageError(f"--arch {arch}: the emulator can stand for {', '.join(known)}; choose one of them.")
    if engine == "cuda":
        raise UsageError("--arch is for the emulator, and --engine cuda runs on this machine's GPU: leave one out.")
    build = rules.build.model_copy(update={"emulator_target": arch})
    return rules.model_copy(update={"build": build}), "emulator"
