"""The least time of a testcase, with the numbers of real GPUs."""

import pytest

from grader.gpu.facts import GpuFacts, known_limits
from grader.operators import load_operator
from grader.timing.floors import least_time, peak_flops

ATTENTION = load_operator("attention_forward")
T23 = (100, 4096, 32)


def gpu(capability: tuple[int, int], sms: int, clock: float, memory: float, bits: int, l2: int) -> GpuFacts:
    limits = known_limits(capability)
    assert limits is not None
    return GpuFacts(sms, clock, memory, bits, l2, limits)


# as the driver of an H200 gave them on 2026-11-21
H200 = gpu((9, 0), 132, 1980, 3201, 6016, 62914560)
A100 = gpu((8, 0), 108, 1410, 1215, 5120, 40 << 20)
V100 = gpu((7, 0), 80, 1530, 877, 4096, 6 << 20)


@pytest.mark.parametrize(
    ("facts", "unit", "teraflops"),
    # the makers' datasheets: V100 15.7 / 125, A100 19.5 / 156 / 312; an H200 at 1980 MHz: 67 and 1070
    [
        (V100, "fp32", 15.7),
        (V100, "fp16", 125),
        (A100, "fp32", 19.5),
        (A100, "tf32", 156),
        (A100, "bf16", 312),
        (H200, "fp32", 66.9),
        (H200, "fp16", 1070),
        (H200, "tf32", 535),
        (H200, "bf16x3", 357),
    ],
)
def test_peaks_are_those_of_the_datasheets(facts: GpuFacts, unit: str, teraflops: float) -> None:
    peak = peak_flops(facts, unit)  # type: ignore[arg-type]
    assert peak is not None
    assert peak[0] / 1e12 == pytest.approx(teraflops, rel=0.01)


def test_a_volta_has_no_tf32() -> None:
    assert peak_flops(V100, "tf32") is None


def test_on_fp32_alone_the_multiply_adds_set_the_floor_of_t23() -> None:
    floor = least_time(ATTENTION, T23, H200, ("fp32",))
    assert floor is not None
    # 4 · 100 · 4096² · 32 = 214.7 GFLOP at 66.9 TFLOP/s
    assert floor.ms == pytest.approx(3.21, abs=0.01)
    assert "floating-point" in floor.limit.name
    assert "Programming Guide" in floor.limit.source
    assert floor.share(6.195) == pytest.approx(0.518, abs=0.002)
    assert floor.tflops(6.195) == pytest.approx(34.7, abs=0.1)


def test_with_tensor_cores_the_exponentials_set_it() -> None:
    floor = least_time(ATTENTION, T23, H200, ("fp32", "tf32", "fp16"))
    assert floor is not None
    # 100 · 4096² exponentials at 16 · 132 · 1.98 GHz
    assert floor.ms == pytest.approx(0.401, abs=0.001)
    assert floor.limit.name == "the exponentials"
    assert floor.refuse_below_ms == pytest.approx(0.201, abs=0.001)


def test_the_fastest_published_kernels_are_believed_and_a_tenth_of_the_work_is_not() -> None:
    floor = least_time(ATTENTION, T23, H200, ("fp32", "tf32", "fp16"))
    assert floor is not None
    assert floor.refusal(0.91) is None  # cuDNN's float16 attention on this shape
    assert floor.refusal(0.41) is None
    sentence = str(floor.refusal(0.1))
    assert "0.1 ms" in sentence
    assert "refused" in sentence


def test_what_fits_the_cache_need_not_come_from_memory() -> None:
    small = least_time(ATTENTION, (2, 128, 32), H200, ("fp16",))
    assert small is not None
    memory = small.terms[2]
    assert memory.ms > 0
    assert memory.hard_ms == 0


def test_an_unknown_architecture_has_no_floor() -> None:
    limits = H200.limits
    unknown = GpuFacts(1, 1.0, 1.0, 1, 1, type(limits)(**{**vars(limits), "compute_capability": (99, 0)}))
    assert least_time(ATTENTION, T23, unknown, ("fp32",)) is None


def test_what_fits_into_the_cache_before_and_after_need_not_pass_through_memory() -> None:
    softmax = load_operator("row_softmax")
    floor = least_time(softmax, (1024, 12288), H200, ("fp32",))  # 50 MB in, 50 MB out, and 63 MB of cache
    assert floor is not None
    memory = next(term for term in floor.terms if term.name.startswith("the transfers"))
    assert memory.ms == pytest.approx(2 * 4 * 1024 * 12288 / H200.bandwidth * 1e3)
    assert memory.hard_ms == 0
    large = least_time(softmax, (4096, 12288), H200, ("fp32",))
    assert large is not None
    memory = next(term for term in large.terms if term.name.startswith("the transfers"))
    assert memory.hard_ms == pytest.approx(2 * (4 * 4096 * 12288 - H200.l2_bytes) / H200.bandwidth * 1e3)


@pytest.mark.parametrize(
    ("operator", "shape", "flops", "exponentials", "values"),
    # counted by loops over what the definitions say, one operation at a time
    [
        ("attention_forward", (3, 128, 32), 3 * 128 * 128 * 32 * 2 * 2, 3 * 128 * 128, 4 * 3 * 128 * 32),
        ("attention_gradient", (2, 128, 32), 2 * 128 * 128 * 32 * 2 * 7, 2 * 2 * 128 * 128, 8 * 2 * 128 * 32),
        ("attention_heads", (2, 3, 5, 16, 0, 0.25), 6 * 25 * 16 * 4, 6 * 25, 4 * 6 * 5 * 16),
        ("attention_heads", (2, 3, 5, 16, 1, 0.25), 6 * (1 + 2 + 3 + 4 + 5) * 16 * 4, 6 * 15, 4 * 6 * 5 * 16),
        ("matrix_product", (7, 5, 3), 7 * 5 * 3 * 2, 0, 7 * 3 + 3 * 5 + 7 * 5),
        ("row_softmax", (7, 5), 7 * 5 * 4, 7 * 5, 2 * 7 * 5),
    ],
)
def test_work_and_traffic_are_those_of_the_definition(
    operator: str, shape: tuple[float, ...], flops: int, exponentials: int, values: int
) -> None:
    found = load_operator(operator)
    assert (found.flops(shape), found.exponentials(shape)) == (flops, exponentials)
    assert found.input_bytes(shape) - found.header_bytes + found.output_bytes(shape) == 4 * values


def test_a_backward_pass_that_keeps_the_probabilities_is_believed() -> None:
    shape = (10, 8192, 64)
    floor = least_time(load_operator("attention_gradient"), shape, H200, ("fp32",))
    assert floor is not None
    arithmetic, exponentials, _ = floor.terms
    assert arithmetic.hard_ms == pytest.approx(arithmetic.ms * 12 / 14), "S and P are not computed a second time"
    assert exponentials.hard_ms == pytest.approx(exponentials.ms / 4)
    assert floor.refusal(0.9 * floor.ms) is None != floor.refusal(0.8 * floor.ms)
