"""The architecture that a program is compiled for decides how its matrix instructions round."""

import subprocess

from emulator.tests.programs import HERE, build


def hashes(architecture: int) -> dict[str, str]:
    """The probe's hash of the results of each form and kind of numbers."""
    flags = ("-O3", "-std=c++17", "-DPROBE_ARCHITECTURE=80")
    program = build(HERE / "tensor_probe.cu", flags=flags, target=f"sm_{architecture}")
    done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=100)
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def test_architectures_add_up_floats_differently_and_integers_alike() -> None:
    ampere, hopper = hashes(80), hashes(90)
    assert ampere.keys() == hopper.keys()
    differing = {name.split()[0] for name in ampere if ampere[name] != hopper[name]}
    assert {"f16_k8", "f16_k16", "bf16_k16", "tf32_k8"} <= differing
    assert not differing & {"f64", "s8_k32", "u8_k16", "s4_k64", "b1_k256", "sparse_s8_k64"}
