"""`--share`: what continuous integration has time for, each program on one of the machines in turn. SSE has the
functions of the runtime alone, since its vectors are as wide as Arm's; AVX2 whole programs alone."""

import pytest

from tests.isa.machines import Machine


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    def is_left_out(item: pytest.Function) -> bool:
        machine = item.callspec.params.get("machine") if hasattr(item, "callspec") else None
        functions = "every_function" in item.name
        return isinstance(machine, Machine) and machine.name in ("avx2" if functions else "sse")

    if config.getoption("share"):
        config.hook.pytest_deselected(items=[item for item in items if is_left_out(item)])
        items[:] = [item for item in items if not is_left_out(item)]
