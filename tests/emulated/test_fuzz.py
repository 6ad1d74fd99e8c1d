"""Programs of tools/emulator_fuzz are functions of their seed, and a few of them agree with the host."""

from pathlib import Path
from random import Random

from emulator.tests.programs import CONFORMANCE_FLAGS, build, execute
from tools.emulator_fuzz.catalogue import read_operations
from tools.emulator_fuzz.parameters import MAX_BYTES, parameters
from tools.emulator_fuzz.program import write_program, write_programs


def test_every_operation_has_one_name_and_known_types() -> None:
    operations = read_operations()
    assert len({o.name for o in operations}) == len(operations)
    assert {"fadd_rz", "vaddss4_", "sat_u8_s64", "bfi_b64"} <= {o.name for o in operations}


def test_a_seed_always_gives_the_same_program(tmp_path: Path) -> None:
    first, again, other = (write_program(tmp_path / str(i), seed) for i, seed in enumerate((3, 3, 4)))
    assert first.read_text() == again.read_text() != other.read_text()


def test_a_folder_for_another_machine_holds_programs_headers_and_a_makefile(tmp_path: Path) -> None:
    write_programs(tmp_path, range(2, 4))
    assert {p.name for p in tmp_path.iterdir()} == {
        "fuzz_2.cu",
        "fuzz_3.cu",
        "operations.cuh",
        "simulation.cuh",
        "groups.cuh",
        "Makefile",
    }


def test_parameters_fit_a_launch_and_reach_its_limit() -> None:
    sizes = [sum(p.bytes for p in parameters(Random(seed))) for seed in range(200)]
    assert max(sizes) <= MAX_BYTES - 16 and max(sizes) > MAX_BYTES - 100 and min(sizes) < 16


def test_a_random_program_gives_the_hosts_results(tmp_path: Path) -> None:
    kinds = {"sweep": 1, "scalars": 1, "collectives": 1, "vectors": 1, "parameters": 1, "groups": 1}
    source = write_program(tmp_path, 17, kinds)
    done = execute(build(source, flags=CONFORMANCE_FLAGS), folder=tmp_path)
    assert (done.exit_code, done.output) == (0, "ok\n")
    assert done.findings() == []
