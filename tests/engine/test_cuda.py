"""Which GPUs there are, and what a program needs to reach one; NVML is played, no GPU is needed."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.gpu import nvml
from grader.programs.engine import cuda
from grader.programs.engine.cuda import CudaEngine, find_gpus
from grader.programs.toolkit import Toolkit


class NVMLError(Exception):
    pass


class Nvml:
    """Three H200 of a machine with eight, in a container: device files 2, 5 and 7. The one that is `silent` is lost."""

    NVMLError = NVMLError

    def __init__(self, *, silent: int | None = None, tells_nodes: bool = True) -> None:
        self.silent = silent
        self.tells_nodes = tells_nodes

    def nvmlInit(self) -> None: ...

    def nvmlShutdown(self) -> None: ...

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.159.04"

    def nvmlDeviceGetCount(self) -> int:
        return 3

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index == self.silent:
            raise NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        return int(uuid.removeprefix("GPU-"))

    def nvmlDeviceGetIndex(self, handle: int) -> int:
        return handle

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"NVIDIA H200"

    def nvmlDeviceGetMinorNumber(self, handle: int) -> int:
        if not self.tells_nodes:
            raise NVMLError("Not Supported")
        return (2, 5, 7)[handle]

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        raise NVMLError("Not Supported")

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(total=141 << 30)


def play(monkeypatch: pytest.MonkeyPatch, driver: Nvml, visible: str | None = None) -> None:
    for module in (cuda, nvml):
        monkeypatch.setattr(module, "pynvml", driver)
    monkeypatch.setattr(cuda, "keep_open", lambda: None)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [
        (None, ["GPU-0", "GPU-1", "GPU-2"]),
        ("", []),
        ("2,0", ["GPU-2", "GPU-0"]),
        ("GPU-1, 1,GPU-0", ["GPU-1", "GPU-0"]),
        ("1,-1,2", ["GPU-1"]),  # CUDA stops at the first that names no device
        ("7", []),
    ],
)
def test_cuda_visible_devices_says_which_and_in_what_order(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, uuids: list[str]
) -> None:
    play(monkeypatch, Nvml(), visible)
    assert [gpu.uuid for gpu in find_gpus()] == uuids


def test_a_gpu_that_does_not_answer_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, Nvml(silent=1))
    assert [gpu.uuid for gpu in find_gpus()] == ["GPU-0", "GPU-2"]


@pytest.mark.parametrize(("tells_nodes", "node"), [(True, "/dev/nvidia5"), (False, "/dev/nvidia1")])
def test_a_program_gets_the_device_file_of_its_gpu_and_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tells_nodes: bool, node: str
) -> None:
    play(monkeypatch, Nvml(tells_nodes=tells_nodes))
    monkeypatch.setattr(Path, "exists", lambda path: str(path).startswith("/dev/nvidia"))
    engine = CudaEngine(Toolkit(tmp_path / "bin/nvcc", tmp_path, "V13.0.88"), find_gpus()[1])
    launch = engine.launch(tmp_path / "program", ["in", "out"], "", traced=False)
    assert [str(device) for device in launch.devices] == ["/dev/nvidiactl", "/dev/nvidia-uvm", node]
    assert launch.environment["CUDA_VISIBLE_DEVICES"] == "GPU-1"
