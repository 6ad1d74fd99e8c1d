"""Threaded code: which instructions share a template, and what is kept of the templates' object code."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cudaemu.native import template_objects
from cudaemu.process import Completed, run_plainly
from cudaemu.ptx import parse
from cudaemu.translate import Translation, translate_module
from cudaemu.translate.template import Recipe, Templates
from cudaemu.translated import Template
from emulator.tests.programs import host

HEADER = '#include "warp.h"\n'
PTX = """
.version 9.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 out)
{{
    .reg .b32 %r<9>;
    .reg .f32 %f<9>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    {body}
    st.global.f32 [%rd3], %f1;
    ret;
}}
"""


def translate(*body: str) -> Translation:
    module = parse(PTX.format(body="\n".join(body)))
    translation, findings = translate_module(module, prefix="m0", lanes=16)
    assert findings == []
    return translation


def sample_templates() -> list[Template]:
    return list(translate("add.f32 %f1, %f1, %f1;").templates)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def objects(templates: Sequence[Template], work: Path) -> tuple[list[Path], int]:
    """The objects for some templates, and how many of them had to be compiled."""
    compiled: list[Sequence[str]] = []

    def counted(command: Sequence[str], folder: Path) -> Completed:
        compiled.append(command)
        return run_plainly(command, folder)

    work.mkdir()
    lent, compilations = template_objects(templates, HEADER, host(counted), work)
    return [*lent, *(compile_() for compile_ in compilations)], len(compiled)


def test_instructions_that_differ_in_registers_and_numbers_share_a_template() -> None:
    templates = Templates()
    first = templates.row("*(VF *)(F + @o128@) = *(VF *)(F + @o256@) * @n7@;")
    second = templates.row("*(VF *)(F + @o512@) = *(VF *)(F + @o64@) * @n-1@;")
    assert first == (0, [("o", 128), ("o", 256), ("n", 7)])
    assert second == (0, [("o", 512), ("o", 64), ("n", -1)])
    assert templates.every[0].operands == 3


def test_an_instruction_that_replaces_its_operand_has_a_template_of_its_own() -> None:
    templates = Templates()
    assert templates.row("@o128@ = -@o256@;")[0] != templates.row("@o128@ = -@o128@;")[0]


def test_a_recipe_gives_the_row_that_the_text_would() -> None:
    recipe = Recipe.of(4, [("o", 256), ("n", 9), ("o", 128)], [128, 256])
    assert recipe.operands([640, 320]) == [320, 9, 640]


def test_unrolling_a_loop_needs_no_more_templates() -> None:
    step = ("fma.rn.f32 %f2, %f1, %f1, %f1;", "mul.f32 %f1, %f2, %f2;")
    few, many = translate(*step), translate(*step * 500)
    assert len(many.templates) == len(few.templates)
    # 1000 instructions more, in three forms at most, at a few numbers each.
    assert sum(map(len, many.parts)) - sum(map(len, few.parts)) < 3 * 1000 * 30


def test_templates_are_compiled_once_on_a_machine(kept: Path, tmp_path: Path) -> None:
    templates = sample_templates()
    _, compiled = objects(templates, tmp_path / "first")
    again, compiled_again = objects(templates[1:], tmp_path / "second")
    assert compiled >= 1 and compiled_again == 0
    assert again and all(path.is_relative_to(tmp_path / "second") for path in again)


def test_another_header_has_templates_of_its_own(kept: Path, tmp_path: Path) -> None:
    templates = sample_templates()
    objects(templates, tmp_path / "first")
    (tmp_path / "second").mkdir()
    lent, compilations = template_objects(templates, HEADER + "#define X\n", host(), tmp_path / "second")
    assert lent == [] and compilations


@pytest.mark.parametrize("damage", ["", "[1, 2"])
def test_kept_templates_that_cannot_be_read_are_compiled_anew(damage: str, kept: Path, tmp_path: Path) -> None:
    templates = sample_templates()
    objects(templates, tmp_path / "first")
    for names in kept.rglob("*.json"):
        names.write_text(damage)
    _, compiled = objects(templates, tmp_path / "second")
    assert compiled >= 1
    assert objects(templates, tmp_path / "third")[1] == 0


def test_a_kept_object_that_is_gone_is_compiled_anew(kept: Path, tmp_path: Path) -> None:
    templates = sample_templates()
    objects(templates, tmp_path / "first")
    for path in kept.rglob("*.o"):
        path.unlink()
    made, compiled = objects(templates, tmp_path / "second")
    assert compiled >= 1 and made


LOOP = (
    "mov.u32 %r2, 0;", "mov.u32 %r3, 1;", "mov.u32 %r4, 2;", "mov.f32 %f2, 0f00000000;", "mov.f32 %f3, 0f00000000;",
    "$again:", "add.u32 %r2, %r2, %r1;", "add.u32 %r3, %r3, %r2;", "add.u32 %r4, %r4, %r3;", "add.f32 %f2, %f2, %f1;",
    "add.f32 %f3, %f3, %f2;", "setp.lt.u32 %p1, %r4, 100;", "@%p1 bra $again;", "add.f32 %f1, %f2, %f3;",
)  # fmt: skip


def test_the_same_program_is_translated_to_the_same_c_each_time() -> None:
    script = "from emulator.tests import test_templates as t; print(t.translate('.reg .pred %p<2>;', *t.LOOP))"
    said = {
        subprocess.run(
            [sys.executable, "-c", script], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "1234"
    }
    assert len(said) == 1
    assert len(said.pop()) > 1000
