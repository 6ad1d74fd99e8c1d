"""The watch recognises what each line of a program computes, and names the line of the first wrong value.

Each program runs once as it is, and once more while it records where some values of its output come from.
"""

import io
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from emulator.tests.programs import build
from grader.checking.watch.labels import Label, Reader
from grader.checking.watch.look import explain, wrong_values
from grader.checking.watch.recording import Malformed, Watched, read_recording
from grader.course.testcase import Case, load_suite
from grader.findings import Finding
from grader.operators import Operator
from grader.programs.run import ValueRecording
from tests.support.course import ROOT

REFERENCE, FIRST_LINES = ROOT / "reference", ROOT / "tests/fixtures/first_lines"


def _case(assignment: str, name: str) -> Case:
    return load_suite(ROOT / f"testcases/{assignment}.yaml").cases[name]


def _input(case: Case, folder: Path) -> tuple[Path, Path]:
    """An input of the case's shape, and the right output in float32."""
    operator, shape = case.operator, case.shape
    rng = np.random.default_rng(7)
    source, expected = folder / "input", folder / "expected"
    with source.open("w+b") as file, expected.open("w+b") as right:
        file.write(operator.encode_header(shape))
        file.truncate(operator.input_bytes(shape))
        right.truncate(operator.expected_bytes(shape))
        for unit in range(operator.units(shape)):
            tensors = [rng.uniform(-2, 2, (t.rows, t.columns)).astype(np.float32) for t in operator.inputs(shape)]
            operator.write_unit(file.fileno(), shape, unit, tensors)
            for layout, values in zip(
                operator.expected_layouts(shape), operator.oracle(shape, tensors, slice(None)), strict=True
            ):
                layout.write(right.fileno(), unit, np.asarray(values, np.float32))
    return source, expected


def _recorded(program: Path, source: Path, output: Path, watched: tuple[Watched, ...]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the test)
    wanted = [(each.word, each.bits) for each in watched]
    environment = ValueRecording(file.fileno(), output.stat().st_size // 4, wanted).environment
    subprocess.run([program, source, output], check=True, env={**os.environ, **environment}, pass_fds=[file.fileno()])
    file.seek(0)
    return file


def _found(program: Path, case: Case, folder: Path) -> list[Finding]:
    source, expected = _input(case, folder)
    output = folder / "output"
    subprocess.run([program, source, output], check=True)
    watched = wrong_values(case.operator, case.shape, expected, output, 5e-3)
    assert watched
    explained = explain(case.operator, case.shape, source, _recorded(program, source, output, watched), watched)
    assert not explained.unread
    return list(explained.findings)


@pytest.mark.parametrize(
    ("program", "kind", "line"),
    [
        ("one_key_first_key_twice", "terms_repeated", 38),
        ("one_key_output_not_rescaled", "not_rescaled", 32),
        ("one_key_value_of_the_query", "operands_wrong", 40),
        ("tiled_no_scale", "scale_wrong", 35),
        ("tiled_reduction_begins_late", "terms_missing", 20),
        ("tiled_stride_without_padding", "operands_wrong", 37),
        ("tiled_weights_of_the_tile", "weight_of_other_maximum", 59),
        ("tiled_merge_without_old_sum", "old_sum_left_out", 58),
    ],
)
def test_a_mistake_is_found_by_its_values_at_its_line(program: str, kind: str, line: int, tmp_path: Path) -> None:
    executable = build(FIRST_LINES / f"{program}.cu", watch=True, record=True)
    first = _found(executable, _case("hw4", "s01"), tmp_path)[0]
    assert (first.kind, first.line) == (kind, line)


def test_values_are_followed_through_calls_that_are_not_inlined(tmp_path: Path) -> None:
    inline = (FIRST_LINES / "tiled_no_scale.cu").read_text(encoding="utf-8")
    product, weight = "s += Qs[y][c] * Ks[x][c];", "const float p = expf(S[y][j] - mt);"
    assert product in inline and weight in inline
    functions = (
        "__device__ __noinline__ float more(float s, float a, float b) { return s + a * b; }\n"
        "__device__ __noinline__ float weight(const float* s, float m) { return expf(*s - m); }\n"
    )
    called = inline.replace(product, "s = more(s, Qs[y][c], Ks[x][c]);")
    called = called.replace(weight, "const float p = weight(&S[y][j], mt);")
    where = called.index("__global__")
    source = tmp_path / "called.cu"
    source.write_text(called[:where] + functions + called[where:], encoding="utf-8")
    first = _found(build(source, watch=True, record=True), _case("hw4", "s01"), tmp_path)[0]
    assert (first.kind, first.words.get("meaning")) == ("scale_wrong", "no_scale")


ONE_KEY = (FIRST_LINES / "one_key_output_not_rescaled.cu").read_text(encoding="utf-8")


def _changed(folder: Path, *changes: tuple[str, str]) -> list[Finding]:
    """What is found in the program of one key at a time after these changes of its text."""
    text = ONE_KEY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "changed.cu").write_text(text, encoding="utf-8")
    return _found(build(folder / "changed.cu", watch=True, record=True), _case("hw4", "s01"), folder)


def test_a_correction_that_is_the_weight_of_the_old_maximum_is_no_mistake(tmp_path: Path) -> None:
    """Only the rows are stored in another order."""
    found = _changed(
        tmp_path,
        ("float m_new = fmaxf(m, s);", "float m_new = m; if (s > m) m_new = s;"),
        ("acc[c] = acc[c] + p", "acc[c] = acc[c] * corr + p"),
        ("o[row * d + c]", "o[(n - 1 - row) * d + c]"),
    )
    assert [each.kind for each in found] == ["stored_elsewhere"]


def test_a_wrong_scale_of_the_query_has_the_line_that_scales_it(tmp_path: Path) -> None:
    sum = "for (int c = 0; c < d; c++)\n            s += q[row * d + c] * k["
    scaled = "for (int c = 0; c < d; c++) {\n            float x = q[row * d + c] * 0.1f;\n            s += x * k["
    found = _changed(tmp_path, (sum, scaled), ("s *= scale;", "}"))
    assert (found[0].kind, found[0].line) == ("scale_wrong", 24)


def test_elements_of_another_batch_are_named(tmp_path: Path) -> None:
    found = _changed(
        tmp_path,
        (
            "CHECK(cudaMalloc(&dev_o, bytes));",
            "CHECK(cudaMalloc(&dev_o, bytes)); float* old; cudaMalloc(&old, 3 * bytes);",
        ),
        ("attention<<<", "if (b == 0) CHECK(cudaMemcpy(old, host, 3 * bytes, cudaMemcpyHostToDevice)); attention<<<"),
        ("(dev, dev + count,", "(old + count, old + 2 * count,"),
    )
    [other] = [each for each in found if each.kind == "other_unit_read"]
    assert (other.array, other.words["label"], other.words["other_unit"]) == ("K and V", "batch 1", "batch 0")


@pytest.mark.parametrize(
    ("assignment", "program", "test"),
    [
        ("hw4", "flash2.cu", "s01"),
        ("backward", "tiled.cu", "s01"),
        ("softmax", "online.cu", "s04"),
        ("matmul", "patches.cu", "s04"),
    ],
)
def test_every_value_of_a_right_program_is_recognised(assignment: str, program: str, test: str, tmp_path: Path) -> None:
    case = _case(assignment, test)
    operator, shape = case.operator, case.shape
    executable = build(REFERENCE / assignment / program, watch=True, record=True)
    source, _ = _input(case, tmp_path)
    output = tmp_path / "output"
    subprocess.run([executable, source, output], check=True)
    watched = _last_values(operator, case, output)
    recording = read_recording(_recorded(executable, source, output, watched))
    names = [tensor.name for tensor in operator.inputs(shape)]
    with source.open("rb") as file:
        tensors = [operator.read_unit(file, shape, unit) for unit in range(operator.units(shape))]
    steps = operator.steps(shape)
    assert steps is not None
    reader = Reader(recording, steps, [dict(zip(names, each, strict=True)) for each in tensors])
    assert reader.run()
    for root, each in zip(recording.roots, watched, strict=True):
        meaning = reader.meanings[root]
        step, factor = steps.results[each.tensor]
        assert isinstance(meaning, Label), meaning
        assert (meaning.step, meaning.index) == (step, each.index)
        assert meaning.factor == pytest.approx(factor, rel=1e-3)
        assert not reader.missing(meaning)


def _last_values(operator: Operator, case: Case, output: Path) -> tuple[Watched, ...]:
    """The last value of each output tensor."""
    values = np.fromfile(output, "<u4")
    found = []
    for layout in operator.output_layouts(case.shape):
        index = operator.units(case.shape) - 1, layout.tensor.rows - 1, layout.tensor.columns - 1
        word = layout.offset(*index[:2]) // 4 + index[2]
        found.append(Watched(layout.tensor.name, index, word, int(values[word])))
    return tuple(found)


def _some_recording(folder: Path) -> bytes:
    case = _case("softmax", "s02")
    executable = build(REFERENCE / "softmax/online.cu", watch=True, record=True)
    source, _ = _input(case, folder)
    output = folder / "output"
    subprocess.run([executable, source, output], check=True)
    return _recorded(executable, source, output, _last_values(case.operator, case, output)).read()


def test_a_file_that_no_recorder_wrote_is_refused(tmp_path: Path) -> None:
    good = _some_recording(tmp_path)
    assert len(read_recording(io.BytesIO(good)).value) > 100
    for changed in (b"", good[:31], b"\0" + good[1:], good[: len(good) // 2]):
        with pytest.raises(Malformed):
            read_recording(io.BytesIO(changed))
    nodes = (
        np.frombuffer(good, "<u4").copy()
        if len(good) % 4 == 0
        else np.frombuffer(good[: len(good) // 4 * 4], "<u4").copy()
    )
    begin = 8 + int(nodes[4]) + 3 * int(nodes[5])
    for place, value in ((begin + 6 * 50, int(nodes[5])), (8, 1 << 30)):
        broken = nodes.copy()
        broken[place] = value
        with pytest.raises(Malformed):
            read_recording(io.BytesIO(broken.tobytes()))


def test_nothing_is_said_of_a_recording_that_was_cut_off(tmp_path: Path) -> None:
    case = _case("softmax", "s02")
    good = bytearray(_some_recording(tmp_path))
    good[12] = 1
    source, output = tmp_path / "input", tmp_path / "output"
    watched = tuple(replace(each, index=(0, 0, 0)) for each in _last_values(case.operator, case, output))
    with tempfile.TemporaryFile() as recording:
        recording.write(good)
        recording.seek(0)
        said = explain(case.operator, case.shape, source, recording, watched)
    assert not said.findings
    assert "more of them than a recording holds" in said.unread
