"""The choice of the processor's vectors, and caches: what one compiled is not taken by another. That all compute the
same is shown by tests/isa."""

from pathlib import Path

import pytest

from cudaemu import runtime_identity
from cudaemu.errors import MachineFault, UsageError
from cudaemu.isa import InstructionSet, instruction_set
from cudaemu.native import compile_c, template_objects
from cudaemu.translated import Template
from emulator.tests import runtime_functions
from emulator.tests.programs import host


def possible() -> list[InstructionSet]:
    """What this processor can run, the best first."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("avx512", "avx2", "sse", "neon"):
            patch.setenv("GRADER_EMULATOR_ISA", name)
            try:
                found.append(instruction_set())
            except UsageError:
                continue
    return found


POSSIBLE = possible()


@pytest.mark.parametrize("isa", [isa.name for isa in POSSIBLE])
def test_every_function_of_the_runtime_is_compared(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_EMULATOR_ISA", isa)
    assert runtime_functions.forgotten() == [], "write a test for it in runtime_functions.h"


# ---- the choice, and caches -----------------------------------------------------------------------------------------


def test_every_instruction_set_is_another_entry_of_every_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path))
    template = Template("one", "int one(void) { return 1; }\n", 0)
    builds = set()
    for isa in POSSIBLE:
        monkeypatch.setenv("GRADER_EMULATOR_ISA", isa.name)
        builds.add(runtime_identity())
        kept, compilations = template_objects([template], "", host(), tmp_path)
        assert kept == []
        for compilation in compilations:
            compilation()
    assert len(builds) == len(list(tmp_path.glob("native/templates-*"))) == len(POSSIBLE)


def compiler_says(folder: Path, *macros: str) -> str:
    """A compiler that predefines these, whatever it is asked to compile for."""
    compiler = folder / "cc"
    compiler.write_text(
        "#!/bin/sh\n" + "\n".join(f"echo '#define {macro} 1'" for macro in macros) + "\necho '#define W 4'\n"
    )
    compiler.chmod(0o755)
    return str(compiler)


def test_a_program_built_on_another_processor_that_shares_the_cache_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-march=native is the same word everywhere: what counts is what the compiler makes of it."""
    identities = set()
    for name, macros in (("old", ["__x86_64__"]), ("new", ["__x86_64__", "__GFNI__"])):
        (tmp_path / name).mkdir()
        monkeypatch.setenv("CC", compiler_says(tmp_path / name, *macros))
        identities.add(runtime_identity())
    assert len(identities) == 2


@pytest.mark.parametrize(
    ("macros", "wanted", "said"),
    [
        (["__x86_64__", "__AVX2__"], "avx512", "GRADER_EMULATOR_ISA=avx512: expected sse on this processor"),
        (["__aarch64__"], "avx2", "GRADER_EMULATOR_ISA=avx2: expected neon on this processor"),
    ],
)
def test_what_a_processor_cannot_run_is_refused(
    macros: list[str], wanted: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler_says(tmp_path, *macros))
    monkeypatch.setenv("GRADER_EMULATOR_ISA", wanted)
    with pytest.raises(UsageError, match=said):
        instruction_set()


def test_an_unknown_instruction_set_is_refused_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_EMULATOR_ISA", "avx3")
    allowed = ", ".join(sorted(isa.name for isa in POSSIBLE))
    with pytest.raises(UsageError, match=f"^GRADER_EMULATOR_ISA=avx3: expected {allowed} .*$"):
        instruction_set()


def test_flags_of_x86_are_not_given_to_another_processors_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler_says(tmp_path, "__aarch64__"))
    for wanted in ("neon", ""):
        monkeypatch.setenv("GRADER_EMULATOR_ISA", wanted)
        chosen = instruction_set()
        assert (chosen.name, chosen.lanes) == ("neon", 4)
        assert not any("vector-width" in flag for flag in chosen.flags)


def test_a_processor_that_the_emulator_does_not_know_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler_says(tmp_path, "__riscv"))
    with pytest.raises(MachineFault, match="x86-64 and 64-bit Arm only"):
        instruction_set()


def test_clang_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler_says(tmp_path, "__x86_64__", "__clang__"))
    with pytest.raises(MachineFault, match="set CC=gcc"):
        instruction_set()


def test_kernels_are_compiled_for_the_chosen_instruction_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_EMULATOR_ISA", POSSIBLE[-1].name)
    text = '#include "warp.h"\n_Static_assert(W == 4, "the least of this processor");\n'
    assert compile_c(text, tmp_path / "least.c", "-O1", host(), tmp_path).exists()
