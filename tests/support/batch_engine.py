"""An engine for tests of batches: it compiles a submission as plain C for this CPU. No CUDA is involved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaemu.process import Runner
from grader.base.verdict import Fault
from grader.programs.engine.interface import Compiled, Launch, Recording


@dataclass(frozen=True)
class PlainC:
    """Runs hand-ins that are C programs; `lane` tells two of them apart."""

    lane: int = 0
    name: str = "plain-c"
    measures_time: bool = False

    @property
    def device(self) -> str:
        return f"this CPU, {self.lane}"

    @property
    def facts(self) -> Mapping[str, str]:
        return {"compiler": "cc"}

    def identity(self) -> str:
        return "plain-c"

    @property
    def build_paths(self) -> tuple[Path, ...]:
        return ()

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        done = run(["cc", "-O1", "-x", "c", *sources, "-o", str(output), "-lm"], folder)
        return Compiled(None if done.exit_code == 0 else Fault.STUDENT, done.output)

    def recording(self) -> Recording:
        raise NotImplementedError("Python submissions need an engine for CUDA")

    def replay(self) -> tuple[str, ...]:
        raise NotImplementedError("Python files need an engine for CUDA")

    def problem(self) -> str:
        return ""

    def launch(self, program: Path, arguments: Sequence[str], trace: str) -> Launch:
        return Launch(command=(str(program), *arguments), traced=False, untraced_reason="plain C has no GPU to trace")
