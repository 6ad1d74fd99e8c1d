"""Runs submissions on the CPU by translating nvcc's PTX to C: for machines without a GPU, and for diagnostics."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import cudaemu
from cudaemu import DEFAULT_SANITIZERS, WATCHING, Unreadable
from cudaemu.host import Answer, Arguments, Confined
from cudaemu.process import Completed, Runner, Stopped
from grader import sandbox
from grader.base.errors import GraderFault
from grader.base.verdict import Fault
from grader.plans.refusals import Refused, refusal
from grader.plans.replay_program import replay_program
from grader.programs import trace
from grader.programs.engine import plan_program
from grader.programs.engine.interface import Compiled, Launch, Recording
from grader.programs.stubs import STUB_HEADERS, header_flags
from grader.programs.toolkit import Toolkit
from grader.sandbox import cache, quarantine, room
from grader.sandbox.budget import Budget, current
from grader.sandbox.scratch import scratch_folder

_MAX_LIBRARY_BYTES = 64 << 20


@dataclass(frozen=True)
class ConfinedHost:
    """The emulator's `Host` for a submission: compilers run as `runner` confines them, the quarantine opens what they
    wrote, and the room reads it."""

    runner: Runner

    def run(self, command: Sequence[str], folder: Path) -> Completed:
        done = self.runner(command, folder)
        if done.stopped:
            raise Stopped(done.output)
        return done

    def read(self, reader: Confined[Arguments, Answer], *words: Arguments.args, **named: Arguments.kwargs) -> Answer:
        return room.read(reader, *words, **named)

    def open(self, path: Path, most_bytes: int) -> IO[bytes]:
        try:
            return quarantine.open_file(path.parent, path.name, most_bytes)
        except quarantine.Refused as refused:
            raise Unreadable(str(refused)) from refused

    def claim(self, made: Path, target: Path) -> bool:
        claimed = quarantine.claim(made.parent, made.name, target)
        if claimed and (drawn := current()) is not None:
            drawn.keep(target.stat().st_size)
        return claimed

    def kept(self, kind: str, name: str, make: Callable[[Path], Path]) -> Path:
        return cache.kept(kind, name, make)

    def entries(self, kind: str, prefix: str) -> Sequence[Path]:
        return sorted(cache.cache_entry(kind, "").glob(f"{prefix}*"))


@dataclass(frozen=True)
class EmulatorEngine:
    """The `emulator` engine; `target` is the architecture that it emulates, such as sm_80."""

    toolkit: Toolkit
    target: str
    name: str = "emulator"
    measures_time: bool = False
    sanitize: frozenset[str] = DEFAULT_SANITIZERS
    """The checks whose findings are reported: memory, race, init, sync."""
    leaks: bool = False
    """Whether the trace reports memory that was never freed."""

    count: bool = False
    """Whether programs count instructions and memory requests, which makes them several times slower."""

    sample: int = 0
    """Of each launch of a program that counts, so many blocks run and stand for the others; 0 runs all."""

    few_runs: bool = False
    """Whether programs are built as fast as possible, since they run a few times on small inputs."""

    short_runs: bool = False
    """Whether programs are built in less time, since they run on samples."""

    record: bool = False
    """Whether programs can record where values come from (`ValueRecording` in programs/run.py)."""

    launched: tuple[str, ...] = ()
    """Kernels, by their names in a trace: if not empty, programs run no others."""

    @property
    def device(self) -> str:
        return f"emulated {self.target}"

    @property
    def facts(self) -> Mapping[str, str]:
        return {"compiler": f"nvcc {self.toolkit.version}", "emulator": cudaemu.runtime_identity()[:16]}

    def identity(self) -> str:
        return f"emulator {self.target} {self.toolkit.identity} {cudaemu.runtime_identity()} {self._extras}"

    @property
    def build_paths(self) -> tuple[Path, ...]:
        ours = (*self.toolkit.added_headers, STUB_HEADERS, Path(cudaemu.__file__).parent)
        return (self.toolkit.root, *ours, *cudaemu.host_compiler_folders())

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        room.warm(*cudaemu.READERS)  # while nvcc compiles
        with scratch_folder("written", folder.parent) as written:
            try:
                program = cudaemu.compile_program(
                    [folder / source for source in sources],
                    output,
                    cudaemu.Workplace(output.parent, folder, written, self._content(folder)),
                    nvcc=self.toolkit.nvcc,
                    host=ConfinedHost(run),
                    flags=(*flags, *header_flags(self.toolkit)),
                    target=self.target,
                    extras=self._extras,
                )
            except cudaemu.CompileFailed as failure:
                return Compiled(Fault.STUDENT, failure.log)
            except Unreadable as error:
                return Compiled(Fault.STUDENT, f"A compiler's messages cannot be read: reading them {error}.")
            except (cudaemu.Unsupported, cudaemu.EmulatorFault, GraderFault) as fault:
                return Compiled(Fault.STUDENT, str(fault), lacking=True)
        return Compiled(None, program.log)

    def _content(self, folder: Path) -> str:
        """A hash over everything that nvcc reads: the submission in `folder`, the toolkit, the host's compiler."""
        digest = hashlib.sha256(f"{self.toolkit.identity}\0{cudaemu.instruction_set().identity}".encode())
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                digest.update(f"\0{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()

    def problem(self) -> str:
        """The emulator has no hardware or driver that could fail."""
        return ""

    @property
    def _extras(self) -> cudaemu.Extras:
        """The same for race and init, so that each finds alone what `all` finds."""
        own = (self.record, self.count, self.few_runs, self.launched, self.short_runs)
        return cudaemu.Extras(bool(self._watches), *own)

    @property
    def _watches(self) -> frozenset[str]:
        return WATCHING if self.sanitize & WATCHING else frozenset()

    def recording(self) -> Recording:
        def loadable(ptx: bytes, _ptxas: Sequence[str], source: Path, work: Path, budget: Budget) -> bytes:
            with scratch_folder("kernel", work) as made, scratch_folder("c", work.parent) as written:
                text = ptx.decode(errors="replace")
                readable = (*self.build_paths, work.parent)
                host = ConfinedHost(sandbox.linker(budget, readable=readable, writable=(made,)))
                try:
                    library = cudaemu.compile_kernel(
                        text,
                        target=self.target,
                        ptxas=str(self.toolkit.nvcc.with_name("ptxas")),
                        extras=self._extras,
                        work=made,
                        written=written,
                        host=host,
                        below=str(source),
                    )
                    return quarantine.read_bytes(library.parent, library.name, _MAX_LIBRARY_BYTES)
                except (cudaemu.Unsupported, Unreadable) as fault:
                    raise Refused(str(fault), lacking=True) from None
                except (Stopped, cudaemu.EmulatorFault, GraderFault) as fault:
                    budget.left_s()  # a compiler that was stopped is no fault
                    raise Refused(str(fault).partition(":\n")[0].strip(), lacking=True) from None
                except cudaemu.CompileFailed as failed:
                    budget.left_s()
                    raise Refused(refusal(failed.log, text)) from None
                except quarantine.Refused as refused:
                    raise Refused(f"The code that the emulator makes of a kernel {refused}.", lacking=True) from None

        return Recording(self.target, loadable)

    def replay(self) -> tuple[str, ...]:
        include = self.toolkit.include
        own = Path(cudaemu.__file__).parent
        paths = (self.toolkit.root, *self.toolkit.added_headers, own, *cudaemu.host_compiler_folders())
        library = cudaemu.runtime_library(include, ConfinedHost(sandbox.linker(900, readable=paths)))
        return str(replay_program("emulator", include)), f"{int(bool(self._watches))}:{library}"

    def launch(self, program: Path, arguments: Sequence[str], trace_target: str) -> Launch:
        start = plan_program.started(program, arguments, self)
        more = {"GRADER_EMULATOR_LEAKS": "1"} if self.leaks else {}
        if self.sample:
            more["GRADER_EMULATOR_SAMPLE"] = str(self.sample)
        if self._watches - self.sanitize:
            more["GRADER_EMULATOR_CHECKS"] = ",".join(self.sanitize)
        return replace(
            start,
            environment={**start.environment, trace.PATH_VARIABLE: trace_target, **more},
            file_sizes_limited=False,  # device memory is a file in memory, to which a limit would apply
            limit_variable="GRADER_EMULATOR_KERNEL_SECONDS",  # lets the emulator report the line of an endless loop
        )
