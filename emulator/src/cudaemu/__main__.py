"""The command `cudaemu`, also as `python -m cudaemu`.

    cudaemu run [--sanitize race,init] [--arch sm_90a] FILE.cu [ARGUMENTS...]

It builds the program in a temporary folder and runs it in the current one. Findings go to stderr, the exit code is the
program's; 1 if there was none to run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cudaemu import WATCHING, Extras, PlainHost, Workplace, compile_program
from cudaemu.build import Unsupported
from cudaemu.errors import EmulatorFault, MachineFault, UsageError
from cudaemu.isa import binutil
from cudaemu.nvcc import CompileFailed
from cudaemu.toolkit import find_nvcc

_CHECKS = ("memory", "sync", "race", "init")
_ADDRESSES = re.compile(r'"(\w+_at)":\[([\d,]+)\]')
"""Of host code, in a finding: where in the program calls were, the innermost first."""
_LIBRARIES = re.compile(r"/usr/|\?|.*(?:cuda_runtime|cudaemu/runtime/)")


def main() -> None:
    """Read the command line and end the process."""
    parser = argparse.ArgumentParser(prog="cudaemu", description="Runs CUDA programs without a GPU.")
    command = parser.add_subparsers(required=True, metavar="run").add_parser("run", help="build and run a program")
    command.add_argument("--sanitize", metavar="CHECKS", default="memory,sync", help=f"of {','.join(_CHECKS)}, or all")
    command.add_argument("--arch", metavar="sm_NN", default="sm_80", choices=("sm_80", "sm_89", "sm_90", "sm_90a"))
    command.add_argument("--flags", metavar="FLAGS", default="-O3", help="nvcc's, in one word: --flags='-O3 -lm'")
    command.add_argument("file", type=Path)
    command.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    checks = set(_CHECKS if given.sanitize == "all" else given.sanitize.split(","))
    if unknown := checks - set(_CHECKS):
        parser.error(f"--sanitize {','.join(sorted(unknown))}: expected some of {','.join(_CHECKS)}, or all")
    if not given.file.is_file():
        parser.error(f"{given.file}: there is no such file")
    try:
        sys.exit(_run(given, checks))
    except CompileFailed as failed:
        sys.exit(failed.log)
    except KeyboardInterrupt:
        sys.exit(130)
    except (Unsupported, EmulatorFault, MachineFault, UsageError) as error:
        sys.exit(f"cudaemu: {error}")


def _run(given: argparse.Namespace, checks: set[str]) -> int:
    """Build the program, run it, print what it reports, and return its exit code as a shell gives it."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise MachineFault("No nvcc was found: install the CUDA toolkit, or `pip install 'cudaemu[cuda]'`.")
    with tempfile.TemporaryDirectory(prefix="cudaemu-") as folder:
        work, program = Path(folder), Path(folder, given.file.stem)
        made = compile_program(
            [given.file],
            program,
            Workplace(work / "work"),
            nvcc=nvcc,
            host=PlainHost(),
            flags=given.flags.split(),
            target=given.arch,
            extras=Extras(watch=bool(checks & WATCHING)),
        )
        sys.stderr.write(made.log)
        environment = os.environ | {"GRADER_EMULATOR_CHECKS": ",".join(checks)}
        command = [program, *given.arguments]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, errors="replace") as process:
            for line in process.stderr or ():
                sys.stderr.write(with_lines(line, program))
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def with_lines(line: str, program: Path) -> str:
    """A finding with lines of host code in place of addresses, as far as the compiler noted any."""

    def place(found: re.Match[str]) -> str:
        command = [binutil("addr2line"), "-i", "-e", str(program), *(hex(int(each)) for each in found[2].split(","))]
        places = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        own = (re.sub(r"^(\./)+| .*", "", each) for each in places if not _LIBRARIES.match(each))
        return f'"{found[1]}":"{next(own, "?")}"'

    return _ADDRESSES.sub(place, line)


if __name__ == "__main__":
    main()
