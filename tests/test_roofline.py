"""The roofline's numbers from records, and the pictures of a submission's page."""

import re
from xml.etree import ElementTree

import pytest

from grader.base.verdict import Verdict
from grader.profiling.roofline import Mark, Roof, Roofline, roofline_of
from grader.records.record import FloorRecord, Record, TestRecord
from grader.site import pictures, report_page
from grader.timing.floors import peak_flops
from tests.site.made_class import H200, SHAPES, timed_test
from tests.support.records import made_record


def graded(*tests: TestRecord, **facts: str) -> Record:
    record = made_record(tests=tests)
    return record.model_copy(update={"engine": record.engine.model_copy(update={"facts": facts})})


def on_h200(**changes: object) -> Record:
    test = timed_test("t23", SHAPES["t23"], slowness=10.0)
    return graded(test.model_copy(update=changes), compute_capability="9.0")


def test_the_devices_limits_follow_from_a_record_alone() -> None:
    found = roofline_of(on_h200())
    assert found is not None
    expected = [peak_flops(H200, unit) for unit in ("fp32", "fp16")]
    assert [roof.name for roof in found.roofs] == ["fp32", "fp16"]
    assert [roof.flops for roof in found.roofs] == pytest.approx([peak[0] for peak in expected if peak])
    assert found.bandwidth == pytest.approx(H200.bandwidth)


def test_a_testcase_lies_at_its_work_over_its_least_traffic_and_below_its_own_limit() -> None:
    found = roofline_of(on_h200())
    assert found is not None
    (mark,) = found.marks
    assert mark.intensity == pytest.approx(4 * 4096**2 * 32 / (4 * 4 * 4096 * 32)), "4 N² d operations, 4 matrices"
    assert mark.limit_tflops == pytest.approx(10 * mark.tflops), "it took ten times the floor"
    assert mark.tflops * 1e12 < found.attainable(found.roofs[1], mark.intensity)


def test_what_is_not_measured_not_believed_or_unknown_has_no_roofline() -> None:
    assert roofline_of(on_h200(floor=None)) is None
    assert roofline_of(on_h200(timing_refused="too fast")) is None
    assert roofline_of(on_h200(verdict=Verdict.WRONG_ANSWER)) is None
    nameless = FloorRecord(ms=1, refuse_below_ms=1, limit="x", terms=(), share=0.5, tflops=1, gbytes_per_s=1)
    assert roofline_of(on_h200(floor=nameless)) is None
    plain = roofline_of(graded(timed_test("t23", SHAPES["t23"], slowness=10.0)))
    assert plain is not None and [roof.name for roof in plain.roofs] == ["fp16"], "an unknown architecture"


def test_a_roof_rises_with_the_bandwidth_to_its_ridge() -> None:
    roof = Roof("fp32", 60e12)
    found = Roofline((roof,), 4e12, (Mark("t01", 1.0, 2.0),))
    assert found.line(roof) == ((0.25, 1.0), (15.0, 60.0), (60.0, 60.0))


def test_pictures_are_svg_that_says_what_it_shows() -> None:
    tests = [timed_test(name, shape, slowness=10.0) for name, shape in SHAPES.items()]
    tests[3] = tests[3].model_copy(update={"timing_refused": "too fast"})
    tests[4] = tests[4].model_copy(update={"verdict": Verdict.WRONG_ANSWER})
    record = graded(*tests, compute_capability="9.0")
    times = ElementTree.fromstring(str(pictures.times(record.tests)))
    assert len(times.findall("path[@class='measured']")) == 8 + 1, "eight tests and the legend"
    assert len(times.findall("path[@class='limit']")) == 10 + 1
    assert len(times.findall("path[@class='crossed']")) == 2 + 1
    assert next(path.findtext("title") for path in times.findall("path[@class='reference']")) == (
        "t23: the reference solution takes 3.611 ms"
    )
    assert (
        times.findtext("desc") == "GPU times of 10 testcases, 1.6 to 10.3 ms; the least possible are 0.16 to 1.03 ms."
    )
    drawn = ElementTree.fromstring(str(pictures.roofline(roofline_of(record))))
    said = [path.findtext("title") or "" for path in drawn.findall("path[@class='measured']")]
    assert "t23: 53.5 TFLOP/s at 1,024 FLOP per byte, 10% of the 535 TFLOP/s possible" in said
    assert [line.findtext("title") for line in drawn.findall("polyline")] == [
        "FP32 on CUDA cores: 67 TFLOP/s", "FP16 on tensor cores: 1,071 TFLOP/s",
    ]  # fmt: skip
    for picture in (times, drawn):
        numbers = [float(value) for text in picture.iter("text") for value in [text.get("x", "0")]]
        assert all(0 <= value <= 640 for value in numbers)
        assert picture.get("role") == "img" and picture.get("aria-label")


def test_names_beside_marks_do_not_overlap() -> None:
    marks = tuple(Mark(f"t{number:02}", 100.0, 10.0) for number in range(20))
    drawn = ElementTree.fromstring(str(pictures.roofline(Roofline((Roof("fp32", 60e12),), 4e12, marks))))
    places = [(t.get("x"), t.get("y")) for t in drawn.findall("text") if re.fullmatch(r"t\d\d", t.text or "")]
    assert 1 <= len(places) == len(set(places)) < 20


def test_a_page_without_gpu_times_says_not_measured() -> None:
    assert "Not measured: the emulator&#39;s times say nothing about a GPU." in report_page(
        [made_record(device="emulated sm_80")]
    )
    assert "The roofline was not measured" in report_page([made_record(speedups=[3.0])])
